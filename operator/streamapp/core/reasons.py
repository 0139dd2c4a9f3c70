"""Why: every reason that a decision, a condition or an Event can carry, with all that is known of it.

Reasons are API: names do not change. The resource, Events, the command line and `docs/reasons.md` use these texts. The
particulars (which task, which pod, how far) are the decision's `detail`. `reason_row` explains the fields.
"""

from enum import Enum, unique
from functools import partial

from streamapp.core.reason_row import NO_ACTION, ReasonRow, Section

_changes = partial(ReasonRow, section=Section.CHANGES)
_user = partial(ReasonRow, section=Section.USER)
_earlier = partial(ReasonRow, section=Section.EARLIER)
_facts = partial(ReasonRow, section=Section.FACTS)
_agents = partial(ReasonRow, section=Section.AGENTS)
_coverage = partial(ReasonRow, section=Section.COVERAGE)
_autoscaling = partial(ReasonRow, section=Section.AUTOSCALING)
_rollouts = partial(ReasonRow, section=Section.ROLLOUTS)
_evictions = partial(ReasonRow, section=Section.EVICTIONS)
_status = partial(ReasonRow, section=Section.STATUS)


@unique
class Reason(Enum):
    """The name is the PascalCase form that users see; the value is its row."""

    @property
    def row(self) -> ReasonRow:
        """Everything that is known of this reason."""
        row: ReasonRow = self._value_  # as `value`, which is a call more: each pass asks hundreds of times
        return row

    @property
    def note(self) -> str:
        """What is the case and what follows, for a person, without the particulars."""
        return f"{self.row.fact} {self.row.consequence}".rstrip()

    @property
    def next_step(self) -> str:
        """What that person can do, or that no action is needed."""
        return self.row.next_step

    @property
    def needs_action(self) -> bool:
        """Tell whether the next step asks something of the user."""
        return not self.row.next_step.startswith(NO_ACTION.rstrip("."))

    def __repr__(self) -> str:
        """The name alone: the row would fill a screen."""
        return f"Reason.{self.name}"

    # Changes in progress.

    Steady = _changes("Current replicas equal desired replicas.")
    StatefulSetMissing = _changes(
        "The StatefulSet does not exist yet, or it was deleted.",
        "No action needed, unless a finalizer keeps one that is being deleted: then remove what it waits for.",
        consequence="The operator creates it with at least as many replicas as it last had.",
        gate="statefulset_is_observed",
        change_ends="It ends by itself, when the StatefulSet has its pods and all of them are ready.",
    )
    Growing = _changes(
        "Desired replicas exceed current replicas.",
        consequence="The operator adds all missing replicas at once, whatever the state of Kafka.",
        change_ends="It ends by itself, when all current replicas exist and are ready.",
        event="ScaledUp",
    )
    Covered = _changes(
        "Every stateful task runs or has a caught-up copy on a remaining pod.",
        consequence="The pod with the highest ordinal is removed.",
        rests_on_tasks=True,
        event="ScaledDown",
    )
    OwnsNothing = _changes(
        "The highest-ordinal pods hold no task, and no task depends on them.",
        consequence="They are removed together.",
        rests_on_tasks=True,
        event="ScaledDownIdlePods",
    )
    Drained = _changes(
        "The highest-ordinal pods no longer hold a task, and every stateful task runs or has a caught-up copy on a "
        "remaining pod.",
        consequence="They are removed together.",
        rests_on_tasks=True,
        event="ScaledDown",
    )
    NeverRan = _changes(
        "The highest-ordinal pods never started and have no group members.",
        consequence="They are removed without a coverage check.",
        event="ScaledDownIdlePods",
    )
    StoppingToZero = _changes(
        "The last pod, or for a migration every pod, is removed, as `scaleDown.allowZero` permits.",
        consequence="No copy of the state remains in a pod; the volumes remain.",
        event="ScaledDown",
    )
    OverriddenByPolicy = _changes(
        "The policy `scaleDown.policy: Immediate` overrides coverage; all other gates passed.",
        "Set `scaleDown.policy` back to Hold when the cause is gone.",
        is_warning=True,
        is_milestone=True,
        event="ScaledDownWithoutCoverage",
    )
    OverriddenByUser = _changes(
        "The annotation `streamapp.dev/override` overrides coverage for this hold; all other gates passed.",
        "No action needed: the next hold has a new ID, which the annotation does not match.",
        is_warning=True,
        is_milestone=True,
        event="ScaledDownWithoutCoverage",
    )
    OverriddenByTimeout = _changes(
        "The pod was waited for as long as `scaleDown.timeout` says.",
        "Find out why the copies did not catch up before the next scale-down.",
        consequence="The setting `onTimeout: Proceed` overrides coverage.",
        is_warning=True,
        is_milestone=True,
        event="ScaledDownWithoutCoverage",
    )
    HoldBegan = _changes(
        "A scale-down begins.",
        consequence="Pods are kept until other pods can take over their tasks.",
        is_milestone=True,
        event="HoldStarted",
    )
    HoldCancelled = _changes(
        "The scale-down is cancelled.",
        consequence="The operator undoes everything that it prepared for the scale-down.",
        is_milestone=True,
        event="HoldCancelled",
    )
    StandbysRaised = _changes(
        "The operator raises `streams.num.standby.replicas` of the group, so that learners come on demand.",
        consequence="It is put back when the scale-down or the rollout is over.",
        is_milestone=True,
        event="StandbysRaised",
    )
    StandbysRestored = _changes(
        "The operator no longer raises `streams.num.standby.replicas` of the group.",
        is_milestone=True,
        event="StandbysRestored",
    )
    LargeDrop = _changes(
        "Desired replicas fell by more than half at once.",
        "If this was a mistake, raise the replicas again: that cancels the hold at once.",
        consequence="The operator scales down one step at a time.",
        is_warning=True,
        is_milestone=True,
        event="LargeDropRequested",
    )

    # Settings of the user.

    InvalidSpec = _user(
        "The StreamApp's spec is not valid.",
        "Correct the field that the message names.",
        consequence="Until it is, the operator changes no pod; a raise still ends a hold.",
        is_warning=True,
        is_milestone=True,
        event="SpecRejected",
    )
    ForeignStatefulSet = _user(
        "A StatefulSet of this name exists and does not belong to this StreamApp.",
        "Adopt it with `kubectl streamapp adopt statefulset/NAME`, or give the StreamApp another name.",
        consequence="The operator does not touch it, so it scales nothing.",
        is_warning=True,
        is_milestone=True,
        event="ForeignStatefulSetFound",
    )
    ApplicationIdTaken = _user(
        "Another StreamApp has the same application ID on the same Kafka cluster. Only its pods are in the group, or "
        "only it has a StatefulSet, or it is older.",
        "Delete the one that is not meant, and create it with another `applicationId`; the field cannot be changed.",
        consequence="The operator acts on the other StreamApp only.",
        is_warning=True,
        is_milestone=True,
        event="DuplicateApplicationIdFound",
    )
    BeingDeleted = _user(
        "The StreamApp is being deleted.",
        "No action needed; `state.retention` decides about the volumes.",
        consequence="The operator scales nothing any more.",
        is_milestone=True,
        event="DeletionStarted",
    )
    Paused = _user(
        "The StreamApp is paused.",
        "Set `spec.paused` to false.",
        consequence="The operator finishes an open step, and scales, restarts and prepares nothing else.",
        is_milestone=True,
        event="ScalingPaused",
    )
    DryRun = _user(
        "This is a dry run (`spec.dryRun`).",
        "Set `spec.dryRun` to false to apply the decisions.",
        consequence="The operator decides and reports everything, and changes nothing.",
        is_milestone=True,
    )
    HeldByUser = _user(
        "The annotation `streamapp.dev/hold` blocks every scale-down.",
        "Remove the annotation to allow scale-downs again.",
        consequence="Scale-ups continue.",
        is_milestone=True,
        hold_ends="It ends when a user removes the hold (`kubectl streamapp unhold`).",
    )
    ZeroNotAllowed = _user(
        "Desired replicas are 0, but `scaleDown.allowZero` is not set.",
        "Set `scaleDown.allowZero: true`, or set at least 1 replica.",
        consequence="No pod is removed.",
        is_milestone=True,
        hold_ends="It ends when `scaleDown.allowZero` is set, or desired replicas are at least 1.",
    )
    Stabilizing = _user("Desired replicas are below current replicas, but not yet for `scaleDown.stabilizationWindow`.")
    GaveUp = _user(
        "The next pod was waited for as long as `scaleDown.timeout` says, and `onTimeout: GiveUp` ended the hold.",
        "Find out why the copies did not catch up, then change the replicas to start a new scale-down.",
        consequence="Current replicas stay.",
        is_overridable=True,
        is_warning=True,
        is_milestone=True,
        hold_ends="The setting `onTimeout: GiveUp` ended it; a change of the spec starts a new scale-down.",
        event="ScaleDownAbandoned",
    )

    # An earlier change is not complete.

    PodTerminating = _earlier(
        "A removed pod is still terminating.",
        "If it lasts, check the pod's termination grace period, and what its `close()` waits for.",
        gate="no_earlier_step_is_open",
    )
    EvictionMissed = _earlier(
        "A container ended unseen, or too soon after its members were last read.",
        "No action needed; a shorter `session.timeout.ms` shortens the wait.",
        consequence="Its members look like live ones to the operator; they leave when their session expires.",
        is_warning=True,
    )
    TasksNotRunning = _earlier(
        "A pod was removed, and some tasks are not known to run again.",
        "If it lasts, check the logs of the pods that the message names: a task may be restoring.",
        gate="every_task_runs",
        is_helped_by_rebalance=True,
    )
    StepSlow = _earlier(
        "A step has been open for more than 10 minutes.",
        "Check the pod and the tasks that the message names.",
        consequence="The disruption budget is open again, unless it follows coverage; the next step waits.",
        is_warning=True,
        is_milestone=True,
    )
    StatefulSetUnobserved = _earlier(
        "The StatefulSet controller has not observed the last change yet.",
        "If it lasts, check kube-controller-manager.",
        gate="statefulset_is_observed",
    )
    RolloutInProgress = _earlier(
        "Some remaining pods do not have the newest template.",
        "If the rollout is paused or does not progress, finish it: no pod is removed while two templates run.",
        consequence="They are restarted first, unless the brokers would move tasks cold (`WouldMoveCold`).",
        gate="no_rollout_is_half_done",
        waits_for_template=True,
        hold_ends="It continues when every remaining pod has the newest template.",
    )
    TemplateUnwritten = _earlier(
        "The StatefulSet does not have the template and the retention policy of the StreamApp yet.",
        "If it lasts, the API server refuses the write; the doctor command shows its answer.",
        consequence="The operator writes them first.",
        gate="retention_is_in_force",
        waits_for_template=True,
    )
    StatefulSetChanged = _earlier(
        "Another user or controller changed a field of the StatefulSet that only the operator sets.",
        "If it lasts, find the writer with `kubectl get statefulset NAME --output=yaml --show-managed-fields`.",
        consequence="The operator restores the field before it removes or restarts a pod.",
        gate="retention_is_in_force",
        is_warning=True,
        event="StatefulSetDriftFound",
    )
    OrdinalsShifted = _earlier(
        "Another user or controller set `ordinals.start` of the StatefulSet, so its pods have other ordinals.",
        "Remove the field with the guard off; Kubernetes then removes the highest ordinal at once.",
        consequence="The operator does not remove the field, since Kubernetes would remove a pod at once.",
        gate="ordinals_begin_at_zero",
    )
    HoldRecordTooLarge = _earlier(
        "The record of the next step exceeds 64 KiB.",
        "Run fewer stream threads per pod.",
    )
    HoldRecordUnreadable = _earlier(
        "The operator cannot read the hold record on the StatefulSet.",
        "If an older operator runs than the one that wrote it, upgrade the operator. Else, if no pod is terminating "
        "and the group is stable, run `kubectl label namespace NAMESPACE streamapp.dev/guard=off`, remove the "
        "annotation `streamapp.dev/hold-record`, and remove the label.",
        consequence="The record can hide an open step.",
        gate="no_earlier_step_is_open",
        hold_ends="It ends when the hold record is readable again or is removed.",
    )

    # Facts are missing, old or contradictory.

    NamespaceUnlisted = _facts(
        "The operator has not listed the StreamApps of every watched namespace since its start.",
        "Restore the operator's Role in that namespace, or take the namespace out of `watchNamespaces`.",
        consequence="It creates no StatefulSet while pods of a StreamApp there can be in the same group.",
        is_warning=True,
        event="CreationDelayed",
    )
    FactsStale = _facts(
        "Kubernetes or the group was last read more than 10 s ago, or the clock was set back since.",
        "If it lasts, check the operator: it is slow or short of CPU, or its node's clock is not synchronized.",
        gate="facts_are_fresh",
        hides_convergence=True,
    )
    BrokersUnreachable = _facts(
        "The brokers did not answer the operator.",
        "Check `kafka.bootstrapServers`, the client properties and the network policy.",
        consequence="Scale-downs are held; scale-ups continue.",
        gate="brokers_answered",
        hides_convergence=True,
    )
    GroupProtocolUnsupported = _facts(
        "The group is not one of Kafka Streams, or it is changing its group protocol.",
        "Wait until all members use one protocol, or check `spec.applicationId`. Or let pods go on readiness alone, "
        "where the group has the streams protocol: `rollout.policy: Immediate` for restarts; the annotation "
        "`streamapp.dev/override`, or `onTimeout: Proceed`, for a scale-down.",
        consequence="Scale-ups continue; no pod is removed or restarted unless a user sets so.",
        gate="brokers_answered",
        hold_ends="It ends only by an override or by `onTimeout: Proceed`, which check the readiness of pods alone.",
        is_overridable=True,
        hides_convergence=True,
    )
    GroupUndecodable = _facts(
        "The operator cannot decode the subscription or the assignment of a member.",
        "If the application's Kafka version is new, upgrade the operator.",
        consequence="The tasks of that member are unknown, so scale-downs are held.",
        gate="brokers_answered",
        hides_convergence=True,
    )
    GroupOutdated = _facts(
        "The brokers show the consumer group as it was earlier.",
        "If it lasts, check the replicas of `__consumer_offsets`: too few are in sync.",
        consequence="Scale-downs are held until the high watermark of the new coordinator has caught up.",
        gate="brokers_answered",
        hides_convergence=True,
    )
    GroupEmpty = _facts(
        "The consumer group has no member.",
        "Check the pods' logs: no instance joined, or all of them left.",
        gate="group_is_stable",
    )
    GroupRebalancing = _facts(
        "The group is rebalancing.",
        "If it lasts, a member joins and leaves repeatedly, or a member blocks the rebalance.",
        gate="group_is_stable",
        is_group_moving=True,
    )
    FollowUpScheduled = _facts(
        "The assignor has scheduled a follow-up rebalance to move tasks.",
        "No action needed; if `learners.triggerRebalance` is set, the operator triggers the rebalance earlier.",
        gate="no_follow_up_is_scheduled",
        is_group_moving=True,
        is_helped_by_rebalance=True,
        triggers_outside_hold=True,
    )
    TaskUnassigned = _facts(
        "A task of the topology is active on no member: it is moving between pods, or no member got it.",
        "If it lasts, compare `spec.topology` with the topology that the application runs.",
        gate="every_task_is_active_once",
        is_group_moving=True,
    )
    TaskAssignedTwice = _facts(
        "A task is active on two members.",
        "If it lasts, two versions of the application disagree; check the members that the message names.",
        gate="every_task_is_active_once",
    )
    TaskNotInTopology = _facts(
        "The group runs a task that is not in the known topology.",
        "Set `spec.topology` to the `Topology#describe()` of what runs; in a rollout, of the version with more tasks.",
        gate="every_task_is_active_once",
    )
    ForeignMember = _facts(
        "The group has a member that belongs to no pod of this StreamApp.",
        "Find the process with the same application ID on the host that the message names.",
        gate="no_member_is_foreign",
    )
    ProbeMemberLeft = _facts(
        "A probe member of an earlier triggered rebalance is still in the group.",
        consequence="The operator removes it.",
        gate="no_member_is_foreign",
    )
    ProcessIdDuplicated = _facts(
        "Two pods run with the same process ID.",
        "A volume was copied with its process file: remove `kafka-streams-process-metadata` from one of them.",
        consequence="Kafka Streams treats them as one process.",
        gate="no_process_id_is_duplicated",
    )
    ProcessIdMismatch = _facts(
        "A pod does not run with the process ID of its volume, or runs with that of another ordinal.",
        "Check whether the volume was replaced or the state directory moved; the message has the recorded ID.",
        gate="identity_holds",
    )
    VolumeClaimMissing = _facts(
        "The volume claim of a pod does not exist, is being deleted, or has lost its volume.",
        "Check `kubectl get pvc`. To give the pod a new volume once its tasks are covered: "
        "`kubectl streamapp restart NAME --ordinal N --new-volume`.",
        consequence="The process ID and the state of the pod end with the pod, or are lost already.",
        gate="identity_holds",
    )
    ProcessIdUnrecorded = _facts(
        "The process ID of a pod is not recorded on its volume claim yet.",
        "No action needed; the operator records it as soon as the pod reports one.",
        gate="identity_holds",
    )

    # Agents and learners on demand.

    AgentDisabled = _agents(
        "Learners on demand need an agent in every pod, and the StreamApp has none.",
        "Enable the StreamApp's agent, or choose another source of learners.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    AgentKeyMissing = _agents(
        "The operator has no key for agents, so it can ask none of them.",
        "Create the key once, in the operator's namespace; pods get it by their next restart: `openssl rand -hex 32 | "
        "kubectl create secret generic streamapp-agent-key --namespace streamapp-system --from-file=keys=/dev/stdin`.",
        consequence="Without it there are no learners on demand, and no agent reports tasks or topology.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
        is_root_cause=True,
    )
    AgentSilent = _agents(
        "An agent does not report, or its reports are old or incomplete.",
        "Check the log of the pod that the message names: the agent needs Java 17, and its lines begin with "
        "streamapp-agent. Check whether the operator can reach the agent's port.",
        consequence="Learners on demand need a report from every agent, so there are none.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    AgentUntrusted = _agents(
        "An agent has no certificate that the operator can trust, so the operator sends it nothing, and no token.",
        "Check the Secret that `agent.tls` names; docs/agents.md (TLS) has the causes. No restart is needed.",
        consequence="Learners on demand need a report from every agent, so there are none.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    AgentReportsPending = _agents(
        "The operator needs two reports from every agent.",
        "No action needed; an agent reports again a moment after its pod started.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    AgentsDisagree = _agents(
        "An agent and the brokers report different tasks for a pod.",
        "No action needed after a rebalance; if it lasts, check the pod that the message names.",
        gate="agents_agree",
    )
    PositionsDisagree = _agents(
        "An agent reports a copy behind a position that the brokers knew before.",
        "No action needed if it ends within a minute; if it lasts, check the pod that the message names.",
        gate="agents_agree",
    )
    AssignorMixed = _agents(
        "The learner task assignor is active in some pods and inactive in others.",
        "Finish the rollout; if it is finished, check the cause in the message.",
        consequence="Learners on demand need it in all pods.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    OlderStreams = _agents(
        "The application's Kafka Streams is older than 3.8 and accepts no other task assignor.",
        "Upgrade Kafka Streams, or keep standbys (`num.standby.replicas`).",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    OwnAssignor = _agents(
        "The application sets its own task assignor.",
        "Remove that setting, or keep standbys and declare the assignor with `learners.assignor`.",
        consequence="The agent does not replace it.",
        gate="tasks_move_to_caught_up_copies",
        is_overridable=True,
    )
    StreamsProtocol = _agents(
        "The application uses the streams group protocol, so the brokers assign tasks.",
        "Choose OnDemand in `learners.source`: the operator then raises the group's standbys while they are needed.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    RestoreBudgetUsed = _agents(
        "As many applications of this Kafka cluster make learners as `restores.perCluster` of the operator allows.",
        "No action needed; to go on without learners, override the hold. If it lasts, look at the holds of the other "
        "applications, or raise the value.",
        consequence="The operator asks for no learners until a place is free; the longest waiting application is next.",
        gate="restore_place_is_free",
        is_overridable=True,
    )
    StandbysNotRaisable = _agents(
        "The operator cannot read or raise `streams.num.standby.replicas` of the group.",
        "Grant DESCRIBE_CONFIGS and ALTER_CONFIGS on the group, or set that value at the broker. To accept a gap for "
        "each pod of a rollout instead, set `rollout.policy: Immediate`.",
        consequence="There are no learners on demand, and a rollout waits. The operator tries again after a minute.",
    )
    UnknownLoader = _agents(
        "The agent cannot make the task assignor visible to the application's class loader.",
        "Add the assignor to the application's class path as a library, or keep standbys.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    AssignorSwitchedOff = _agents(
        "The task assignor is not among the defaults that the agent can set.",
        "Allow the StreamApp's agent to set the assignor, or choose another source of learners.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    AgentFailed = _agents(
        "The agent failed to set the task assignor.",
        "Check the cause in the message; the application itself is not affected.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    RecoveryLagUnclear = _agents(
        "Pods of one template report different values of `acceptable.recovery.lag`, or a pod reports none.",
        "Set `acceptable.recovery.lag` to one value for all pods, and to the same in `learners.acceptableRecoveryLag`.",
        consequence="The smallest value counts, and no pod is drained.",
        gate="the_source_that_is_demanded_is_in_force",
        is_overridable=True,
    )
    RecoveryLagUnbounded = _agents(
        "The application's `acceptable.recovery.lag` has no bound.",
        "Set `acceptable.recovery.lag` to a number of records that restore in seconds; the default is 10000.",
        consequence="Every copy counts as caught up, and a task that moves to an empty copy stops for long.",
        gate="tasks_move_to_caught_up_copies",
        is_overridable=True,
    )
    LearnersWanted = _agents(
        "The set of leaving processes has changed.", consequence="The operator announces it to the agents."
    )
    AnnouncementWithdrawn = _agents(
        "No process leaves any more.", consequence="The operator withdraws its announcement from the agents."
    )
    AnnouncementRenewed = _agents(
        "The announcement of the leaving processes expires soon.", consequence="The operator renews it."
    )
    AnnouncementPending = _agents(
        "Some agents have not received the announcement of the leaving processes.",
        "No action needed; if it lasts, check the agent of the pod that the message names.",
        gate="announcement_is_heard",
        is_overridable=True,
    )
    AnnouncementNotFollowed = _agents(
        "The last assignment does not follow the announcement of the leaving processes: the group's leader had not "
        "received it, or its assignor fell back.",
        "No action needed; the next rebalance follows the announcement. If `learners.triggerRebalance` is set, the "
        "operator triggers it.",
        gate="announcement_is_followed",
        is_overridable=True,
        is_helped_by_rebalance=True,
        moves_tasks=True,
    )
    ColdScaleUp = _coverage(
        "The brokers give tasks to new pods at once, before the new pods have any state.",
        "Scale up before the load comes; each task that moves is silent until its state is restored.",
        consequence="With the streams group protocol brokers make no warm-ups up to Kafka 4.4.",
        is_warning=True,
        event="ColdScaleUpStarted",
    )
    DiskRoomUnknown = _agents(
        "The free space on the volumes of the remaining pods is unknown and was not checked.",
        "No action needed if you know that learners fit; the operator checks it if agents report the free space.",
        event="DiskSpaceNotReported",
    )
    MaxIdleTimeTooLong = _agents(
        "State can lie unused for longer than a changelog keeps deletions.",
        "Make `state.maxIdleTime` shorter than the setting that the message names, or raise that setting of the topic.",
        consequence="A pod that returns later can serve deleted keys.",
        is_warning=True,
        always_needs_action=True,
        event="MaxIdleTimeExceededRetention",
    )

    # Coverage is missing or unknown.

    TopologyUnknown = _coverage(
        "The application's tasks, or which of them have state, are unknown.",
        "Put the output of `Topology#describe()` into `spec.topology`, or enable the agent. An agent in every pod "
        "reports the topology, once the operator can reach all of them.",
        consequence="A task without a pod would go unnoticed, so scale-downs are held.",
        gate="topology_is_known",
        is_overridable=True,
        is_helped_by_rebalance=True,
        triggers_outside_hold=True,
        hides_convergence=True,
    )
    AssignorUnknown = _coverage(
        "Whether the application moves tasks to caught-up copies only is unknown.",
        "Declare `learners.assignor: HighAvailability` if the application runs the default assignor.",
        gate="tasks_move_to_caught_up_copies",
        is_overridable=True,
    )
    PositionsUnknown = _coverage(
        "The group's positions are from a rebalance that this operator did not observe.",
        "No action needed; the next triggered rebalance renews them.",
        gate="positions_are_known",
        is_overridable=True,
        is_helped_by_rebalance=True,
    )
    RebalanceTriggerDisabled = _coverage(
        "Without `learners.triggerRebalance` positions are never fresh, so no copy is known to be caught up.",
        "Set `learners.triggerRebalance` to true, or override coverage for this hold with the annotation "
        "`streamapp.dev/override`.",
        gate="positions_are_known",
        is_overridable=True,
    )
    RebalanceTriggerImpossible = _coverage(
        "The operator cannot trigger a rebalance in a group of one member, so its progress is unknown.",
        "No action needed while that pod stays.",
        gate="positions_are_known",
        is_overridable=True,
        hides_convergence=True,
    )
    EndOffsetsUnread = _coverage(
        "The operator could not read the end offsets of a changelog.",
        "Check the operator's right to describe the changelog topics.",
        consequence="The lag of the copies is unknown, so scale-downs are held.",
        gate="end_offsets_were_read",
        is_overridable=True,
        hides_convergence=True,
    )
    LagUnknown = _coverage(
        "The lag of a copy is unknown.",
        "Check the task and the cause in the message.",
        gate="every_stateful_task_is_covered",
        is_overridable=True,
        wait_rank=2,
        is_helped_by_rebalance=True,
        triggers_outside_hold=True,  # a copy that was given back says nothing of its lag before its next join
        hides_convergence=True,
    )
    NoLearners = _coverage(
        "A stateful task has no copy on a remaining pod, and the application makes none.",
        "With the streams protocol and OnDemand, wait: the operator raises the standbys of the group. Else "
        "set `num.standby.replicas` (with the streams protocol: `streams.num.standby.replicas` of the group) to at "
        "least 1, or override coverage for this hold with the annotation `streamapp.dev/override`.",
        gate="every_stateful_task_is_covered",
        is_overridable=True,
        wait_rank=1,
    )
    WouldMoveCold = _coverage(
        "Brokers assign tasks by the streams protocol, and would give one to a pod without a caught-up copy of it.",
        "Choose another number of replicas; without OnDemand, or set the group's `streams.num.standby.replicas` to 2 "
        "at the broker. To accept the restore, set the annotation `streamapp.dev/override` for a hold, or "
        "`rollout.policy: Immediate` for a rollout.",
        gate="brokers_choose_caught_up_copies",
        is_overridable=True,
        wait_rank=7,
    )
    BrokerAssignorUnknown = _coverage(
        "The brokers assign the tasks of this group, and this operator does not know how.",
        "Use brokers 4.2 to 4.4 with their default assignor, or upgrade the operator.",
        gate="brokers_choose_caught_up_copies",
        is_overridable=True,
    )
    PositionsNotReported = _coverage(
        "The group uses the streams protocol, whose brokers do not report which tasks run and how far copies are.",
        "Enable the agent (`agent.enabled`).",
        consequence="Scale-downs and restarts are held; scale-ups continue.",
        gate="positions_are_known",
        is_overridable=True,
        hides_convergence=True,
    )
    LearnersCatchingUp = _coverage(
        "Copies on the remaining pods are still behind.",
        "No action needed; the message says the lag and the time left.",
        gate="every_stateful_task_is_covered",
        is_overridable=True,
        wait_rank=5,
        is_helped_by_rebalance=True,
        triggers_outside_hold=True,
    )
    LagLimitBelowRate = _coverage(
        "The application writes more records during one reading than `acceptableRecoveryLag` allows.",
        "Raise `learners.acceptableRecoveryLag` together with the application's own `acceptable.recovery.lag`.",
        consequence="No reading can show a copy as caught up.",
        gate="every_stateful_task_is_covered",
        is_overridable=True,
        wait_rank=3,
        is_helped_by_rebalance=True,
        # It is over when the backlog is worked off, and only another reading can show that.
        triggers_outside_hold=True,
        hides_convergence=True,
    )
    TasksReadyToMove = _coverage(
        "Learners have caught up; the next rebalance moves their tasks off the leaving pods.",
        "No action needed; if `learners.triggerRebalance` is set, the operator triggers the rebalance.",
        gate="pods_are_drained",
        is_overridable=True,
        is_helped_by_rebalance=True,
        moves_tasks=True,
        triggers_outside_hold=True,
    )
    LearnersNotPlaced = _coverage(
        "A task of a leaving pod has no learner on a remaining pod yet.",
        "No action needed: assignors place a few learners at a time, brokers all. If it lasts, check the leader's log.",
        gate="pods_are_drained",
        is_overridable=True,
        wait_rank=6,
        is_helped_by_rebalance=True,
    )
    Draining = _coverage(
        "Tasks are moving off the leaving pods.",
        "If it lasts, check the pods and tasks that the message names.",
        gate="pods_are_drained",
        is_overridable=True,
        is_helped_by_rebalance=True,
    )
    NoRoomForLearners = _coverage(
        "The volumes of the remaining pods have no space for the state of the leaving pods.",
        "Enlarge the volumes, or remove files that do not belong there.",
        consequence="No learner is placed.",
        gate="learners_have_room",
        is_overridable=True,
    )
    TooFewCopies = _coverage(
        "Fewer copies of a stateful task would remain than `scaleDown.minCopies` asks for.",
        "Raise the standbys (docs/how-to/capacity.md), set more replicas, or lower `scaleDown.minCopies`.",
        consequence="The pod stays.",
        gate="every_task_keeps_its_copies",
        is_overridable=True,
        is_helped_by_rebalance=True,
    )
    TooFewZones = _coverage(
        "The copies of a stateful task would remain in fewer zones than `scaleDown.minZones` asks for.",
        "Spread pods with `topologySpreadConstraints` and copies with `rack.aware.assignment.tags`, set more replicas, "
        "or lower `scaleDown.minZones`.",
        consequence="The pod stays.",
        gate="every_task_keeps_its_zones",
        is_overridable=True,
        is_helped_by_rebalance=True,
    )
    ZonesUnknown = _coverage(
        "The zone of a pod is unknown, and `scaleDown.minZones` asks for copies in several zones.",
        "Use Kubernetes 1.35, which labels pods with their zone, or set the chart value `nodes.watch`. Check the label "
        "`topology.kubernetes.io/zone` of the nodes.",
        consequence="The pod stays.",
        gate="every_task_keeps_its_zones",
        is_overridable=True,
    )
    MemoryTooSmall = _coverage(
        "The remaining pods' memory limits have no room for the tasks of the leaving pods (`learners.memoryPerTask`).",
        "Raise the container's memory limit, bound RocksDB and lower `learners.memoryPerTask`, or set more replicas.",
        consequence="The pod stays: the kernel kills a container that passes its limit.",
        gate="tasks_fit_into_memory",
        is_overridable=True,
    )
    MemoryUnknown = _coverage(
        "An agent does not report the memory of its container, and `learners.memoryPerTask` asks for it.",
        "Check the agent of the pod that the message names, or remove `learners.memoryPerTask`.",
        consequence="The pod stays.",
        gate="tasks_fit_into_memory",
        is_overridable=True,
    )
    MemoryMayNotSuffice = _coverage(
        "By an estimate, the tasks of the leaving pods may not fit into the memory limits of the remaining pods.",
        "Watch their memory, or set `learners.memoryPerTask`, which holds a scale-down that does not fit.",
        consequence="The scale-down goes on: the estimate is too high, since it counts all memory beside the heap.",
        is_warning=True,
        event="TightMemoryFound",
    )
    NoProgress = _coverage(
        "The next pod was waited for as long as `scaleDown.timeout` says, and for as long no copy came nearer.",
        "Check the slowest task in the message: the lag of its copy does not fall.",
        is_overridable=True,
        is_warning=True,
        event="HoldStalled",
    )
    ReadingsPending = _coverage("Coverage must hold in two consecutive readings, at least 10 seconds apart.")
    GroupChanged = _coverage(
        "Members or tasks changed between two readings.",
        "If it lasts, members join and leave repeatedly.",
        consequence="The operator takes both readings again.",
        gate="only_pods_without_tasks_go_together",
    )

    # Autoscaling.

    AutoscalingInOrder = _autoscaling("The operator sees no conflict about the replicas.")
    AutoscalerAimsAtStatefulSet = _autoscaling(
        "An autoscaler scales the StatefulSet instead of the StreamApp.",
        "Set its `scaleTargetRef` to the StreamApp, with the apiVersion streamapp.dev/v1alpha1.",
        consequence="The operator cannot hold the pods that the autoscaler removes.",
        sends_event_when_found=True,
        is_warning=True,
        event="StatefulSetAutoscalerFound",
    )
    TwoWritersOfReplicas = _autoscaling(
        "An autoscaler and another client both write `spec.replicas`.",
        "Leave `spec.replicas` out of what the other client applies (docs/autoscaling.md), or delete the autoscaler.",
        consequence="Each overwrites the other.",
        sends_event_when_found=True,
        is_warning=True,
        event="ConflictingReplicaWritersFound",
    )
    AutoscalerCannotAct = _autoscaling(
        "The autoscaler does not scale at present, and reports why.", "Fix what its message names."
    )
    IdlePods = _autoscaling(
        "There are more pods than tasks.",
        "Set fewer replicas, lower the autoscaler's `maxReplicas`, or add partitions.",
        consequence="A pod without a task processes nothing, however high the load.",
    )
    AutoscalerExceedsTasks = _autoscaling(
        "The autoscaler's `maxReplicas` exceeds the number of tasks.",
        "Set `maxReplicas` to at most the number of tasks.",
        consequence="Pods beyond that number process nothing.",
    )
    AutoscalersUnread = _autoscaling(
        "Whether autoscalers control the replicas is unknown.",
        "If the message names a right, grant it to the operator's service account, or ignore this.",
        consequence="No decision waits for it.",
    )

    # Rollouts.

    RolloutPaused = _rollouts(
        "Pods have an older template, and `rollout.policy: Paused` keeps them.",
        "Set `rollout.policy` to WhenCaughtUp to restart them.",
        waits_for_user=True,
        gives_way_to_evictions=True,
    )
    RolloutPodNotRunning = _rollouts(
        "A pod with the newest template does not run, or is not ready.",
        "Check that pod; if its image is bad, change the template.",
        consequence="No other pod is restarted.",
        gives_way_to_evictions=True,  # perhaps it cannot run on its node
    )
    RestartCovered = _rollouts(
        "Every stateful task runs or has a caught-up copy on another pod.", consequence="One pod is restarted."
    )
    RestartOfIdlePod = _rollouts("A pod that does not run and holds no task is replaced.")
    RestartDrained = _rollouts(
        "The pod no longer holds a task, and every stateful task is covered without it.",
        consequence="The pod is restarted.",
    )
    RestartWithoutLearners = _rollouts(
        "The application has no standbys, so no restart can be covered.",
        "Set `num.standby.replicas` (streams protocol: that of the group) to at least 1 to have restarts covered.",
        consequence="After all tasks were seen running, one pod is restarted with its volume.",
    )
    FirstRestartUncovered = _rollouts(
        "The newest template brings the agent, and only agents can report what covers a restart: the topology, or with "
        "the streams protocol the positions. So the first restart cannot be covered.",
        "Accept a gap for each pod, and undo that after the rollout: `kubectl patch streamapp NAME --type=merge "
        """--patch '{"spec":{"rollout":{"policy":"Immediate"}}}'`. Without the streams protocol, `spec.topology` is """
        "another way.",
        consequence="The rollout waits, and with it every scale-down.",
        hold_ends="It continues when a user accepts the restarts or, without the streams protocol, sets "
        "`spec.topology`.",
        change_ends="The rollout continues when a user accepts the restarts or, without the streams protocol, sets "
        "`spec.topology`.",
        waits_for_user=True,
        gives_way_to_evictions=True,
        always_needs_action=True,
    )
    RestartUncovered = _rollouts(
        "The policy `rollout.policy: Immediate` restarts pods one by one without a coverage check."
    )

    # Evictions and node drains.

    OneAtATime = _evictions(
        "One pod may be evicted at a time, whatever its tasks.",
        "No action needed; with `disruption.policy: WhenCaughtUp` evictions wait for caught-up copies.",
    )
    EveryTaskCovered = _evictions(
        "Every stateful task runs on one pod and has a caught-up copy on another.",
        consequence="Each pod may be evicted, one at a time.",
    )
    EvictionCovered = _evictions(
        "The pod's node must be drained, and every stateful task is covered without the pod.",
        consequence="The pod may be evicted; the operator does not evict it.",
        is_milestone=True,
        event="EvictionAllowed",
    )
    EvictionOfIdlePod = _evictions(
        "The pod's node must be drained, and the pod does not run and has no member in the group.",
        consequence="The pod may be evicted; the operator does not evict it.",
        is_milestone=True,
        event="IdleEvictionAllowed",
    )
    NoDrainedNode = _evictions(
        "No pod is on a node that must be drained, so no pod may be evicted.",
        "No action needed; `kubectl drain` cordons a node, and then the operator moves the tasks of its pods away.",
        consequence="Once there is such a node, the operator makes copies, or finds out how far they are.",
    )
    NodesUnwatched = _evictions(
        "The operator does not see which nodes must be drained.",
        "Set the chart value `nodes.watch`, or cordon the node and run `kubectl streamapp restart NAME --ordinal N`.",
        consequence="No pod may be evicted, so `kubectl drain` does not end.",
        always_needs_action=True,
    )
    DisruptionsFenced = _evictions(
        "Another operator process wrote the disruption budget.",
        consequence="It is closed until coverage is judged anew.",
    )

    # Convergence, identity and steps.

    Converged = _status(
        "The group is stable, every task runs, every copy is caught up, every pod is ready, and no template waits."
    )
    TasksRestoring = _status(
        "Tasks are assigned, but not known to run yet.",
        "No action needed; the message names the slowest.",
        gate="every_stateful_task_is_covered",
        is_overridable=True,
        wait_rank=4,
        is_helped_by_rebalance=True,
        triggers_outside_hold=True,
    )
    VolumeTooSmall = _status(
        "A volume claim asks for less than `state.volumeClaimTemplate` says.",
        consequence="The operator has the claim ask for as much; the storage driver enlarges the volume.",
    )
    StorageClassDiffers = _status(
        "The StatefulSet makes volume claims of another storage class than the StreamApp names.",
        "Once nothing is held: `kubectl delete statefulset NAME --cascade=orphan`, and then for each ordinal `kubectl "
        "streamapp restart NAME --ordinal N --new-volume`.",
        consequence="Its claim templates are immutable, and no volume changes. When the StatefulSet is gone, the "
        "operator makes it anew around the same pods.",
        is_warning=True,
        event="OtherStorageClassFound",
    )
    VolumeNotExpandable = _status(
        "The API server does not let a volume claim ask for more.",
        "Set `allowVolumeExpansion: true` in the storage class if its driver can expand volumes; the message has the "
        "cause. Else, once nothing is held: `kubectl delete statefulset NAME --cascade=orphan`, and then for each "
        "ordinal `kubectl streamapp restart NAME --ordinal N --new-volume`.",
        consequence="The volume keeps its size. The operator tries again every five minutes.",
        is_warning=True,
        event="VolumeExpansionRefused",
    )
    ReplicasPending = _status("Current replicas do not equal desired replicas yet.")
    PodsNotReady = _status(
        "Fewer pods are ready than current replicas.",
        "Check the pods that are not ready.",
        gate="the_other_pods_are_ready",
        change_ends="It ends when every current replica is ready.",
    )
    QuotaExceeded = _status(
        "A pod is missing, since it would pass a ResourceQuota of the namespace.",
        "Raise the quota, lower what the pods request, or set fewer replicas.",
        consequence="Kubernetes adds the pod when there is room; the operator has set the replicas already.",
        change_ends="It ends when every current replica is ready.",
    )
    PodsUnschedulable = _status(
        "A pod is on no node: the scheduler finds none that takes it.",
        "Add nodes, lower what the pods request, or check the constraint that the message names.",
        consequence="The scheduler goes on trying; the operator has set the replicas already.",
        change_ends="It ends when every current replica is ready.",
    )
    PodFails = _status(
        "A pod does not run its application.",
        "Read the pod's log with `kubectl logs --previous` and its Events with `kubectl describe pod`; fix the cause.",
    )
    VolumeFull = _status(
        "The application of a pod ended because it found no space left on a file system.",
        "Raise `spec.state.volumeClaimTemplate.resources.requests.storage`: the volume grows, and the pod starts. "
        "Where its storage class cannot expand volumes, raise the replicas.",
        consequence="Its tasks move to the other pods, which need the room; no scale-down can be covered.",
    )
    PodNotInGroup = _status(
        "A pod is ready, but has no member in the group.",
        "If it lasts, check its log: it is still starting, or has another application ID.",
    )
    ProcessWarmsUp = _status(
        "A process has just joined. Its learners have caught up, and it takes over their tasks when it is warm.",
        "No action needed; `streamapp.assignor.warm.ms` of Kafka Streams sets the time (10 s, a minute at most).",
    )
    LearnersOnDemand = _status("The assignor in all pods makes copies on demand, and moves tasks before a pod leaves.")
    StandbysOnDemand = _status("The operator raises the standbys of the group when a pod must leave or restart.")
    StandbysDetected = _status("Stateful tasks have standbys.")
    LearnersNotDetected = _status("Whether the application has standbys is visible only while it is converged.")
    NoStatefulTasks = _status("No task has state, so none needs a copy.")
    IdentityHolds = _status("Every pod runs with the process ID of its volume.")
    NoStateOnDisk = _status("The application keeps no state on disk, so a pod is a new process at every start.")
    IdleStateExpired = _status(
        "A pod waits to start, and its state has become older than `state.maxIdleTime`.",
        "Run `kubectl describe pod` and fix what keeps the pod from starting.",
        consequence="The operator deletes the pod; the next pod removes the state before it starts.",
    )
    KafkaAnswers = _status("The brokers answered the last request.")
    StepOpen = _status("Replicas were removed; the step is not complete.", gate="no_earlier_step_is_open")
    StepClosed = _status(
        "The pod is gone, its members have left, and every task runs.",
        is_milestone=True,
        event="StepCompleted",
    )
    ContainerEnded = _status(
        "The container has ended; the operator evicts its members from the group, so the group does not wait for them."
    )
