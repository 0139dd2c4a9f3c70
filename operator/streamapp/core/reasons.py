"""Why: every reason that a decision, a condition or an Event can carry, with its note and what to do about it.

Reasons are API: names do not change, and resource, Events, command line and `docs/reasons.md` use these same texts. The
part that changes from case to case (which task, which pod, how far) is the decision's `detail`.
"""

from enum import Enum


class Reason(Enum):
    """The name is the PascalCase form that users see; the value is the note, or (note, next step)."""

    note: str
    """What is the case, for a person, without the particulars."""
    next_step: str
    """What that person can do, or that nothing is to be done."""

    def __init__(self, note: str, next_step: str = "Nothing is to be done.") -> None:
        self.note = note
        self.next_step = next_step

    # Nothing to do, or doing it.

    Steady = "As many replicas are granted as are wished for."
    StatefulSetMissing = (
        "There is no StatefulSet yet, or it was deleted; it is created with at least as many replicas as it last had."
    )
    Growing = "More replicas are wished for than are granted; all of them are granted at once, whatever Kafka says."
    Covered = "Every stateful task runs on, or has a caught-up copy on, a pod that stays; the top ordinal goes."
    OwnsNothing = "The top pods hold no task, and no task would miss them; they go together."
    Drained = (
        "The top pods hold no task any more, and every stateful task runs on, or has a caught-up copy on, a pod that "
        "stays; they go together."
    )
    NeverRan = (
        "The container of the top pods never ran and nobody in the group is theirs; they go without further questions."
    )
    StoppingToZero = "The last pod goes, as `scaleDown.allowZero` permits; no copy can remain, the volumes do."
    ForcedByPolicy = (
        "Coverage is overridden by `scaleDown.policy: Immediate`; all other gates held.",
        "Set the policy back to Hold when the reason for it is gone.",
    )
    ForcedByOverride = (
        "Coverage is overridden for this one hold by the annotation `streamapp.dev/override`; all other gates held.",
        "Nothing is to be done: a new hold has a new ID, and the annotation does not fit it.",
    )
    ForcedByTimeout = (
        "The hold made no progress for `scaleDown.timeout`, and `onTimeout: Proceed` says to go on without coverage.",
        "Find out why the copies did not catch up before the next scale-down.",
    )
    HoldBegan = "A scale-down begins: pods are kept until what they hold is elsewhere."
    HoldCancelled = "The scale-down is called off; everything that was prepared for it is undone."
    LargeDrop = (
        "The wish fell by more than half at once. It is followed, one step at a time.",
        "If nobody meant it, raise the replicas again: that cancels the hold at once.",
    )

    # The user, or the resource, says no.

    InvalidSpec = (
        "The StreamApp's spec is not valid; nothing is changed until it is.",
        "Correct the field that the message names.",
    )
    ForeignStatefulSet = (
        "A StatefulSet of this name belongs to somebody else; it is left alone.",
        "Give the StreamApp another name, or remove that StatefulSet.",
    )
    ApplicationIdTaken = (
        "An older StreamApp has the same application ID on the same Kafka cluster; only that one is worked on.",
        "Give one of them another application ID, or delete it.",
    )
    BeingDeleted = (
        "The StreamApp is being deleted; nothing is scaled any more.",
        "Nothing is to be done; the volumes follow `state.retention`.",
    )
    Paused = (
        "The StreamApp is paused: nothing is scaled, restarted or prepared; an open step is brought to its end.",
        "Set `spec.paused` to false.",
    )
    DryRun = (
        "Everything is decided and reported, nothing is done (`spec.dryRun`).",
        "Set `spec.dryRun` to false to have it done.",
    )
    HeldByUser = (
        "The annotation `streamapp.dev/hold` forbids every scale-down; growing goes on.",
        "Remove the annotation when pods may go again.",
    )
    ZeroNotAllowed = (
        "Zero replicas are wished for, but `scaleDown.allowZero` is not set; nothing is removed.",
        "Set `scaleDown.allowZero: true`, or wish for at least one.",
    )
    Stabilizing = (
        "The wish is lower than what is granted, but not yet for as long as `scaleDown.stabilizationWindow` asks."
    )
    GaveUp = (
        "The hold made no progress for `scaleDown.timeout`, and `onTimeout: GiveUp` ended it; what is granted stays.",
        "Find out why the copies did not catch up, then change the replicas to begin anew.",
    )

    # An earlier change is not finished.

    PodTerminating = (
        "A pod that was taken away is still stopping.",
        "If it does not end, look at its termination grace period and at what its `close()` waits for.",
    )
    EvictionMissed = (
        "A container ended unseen, or too soon after its members were last seen, so that they could not be told apart "
        "from live ones; they leave the group when their session times out.",
        "Nothing is to be done; a shorter `session.timeout.ms` shortens it.",
    )
    TasksNotRunning = (
        "After a pod went, not every task is known to run again.",
        "If it lasts, look at the logs of the pods named in the message: a task may be restoring.",
    )
    StepSlow = (
        "A step is open for more than ten minutes; the disruption budget is open again, the next step waits.",
        "Look at the pod and the tasks named in the message.",
    )
    StatefulSetUnobserved = (
        "The StatefulSet controller has not seen the last change yet.",
        "If it lasts, look at kube-controller-manager.",
    )
    RolloutInProgress = (
        "Pods that stay do not all have the newest template; they are restarted first.",
        "If the rollout is paused or stands still, finish it: no pod goes while two templates run.",
    )
    TemplateUnwritten = (
        "The StatefulSet does not have the template and the retention policy of the StreamApp yet.",
        "No action needed: they are written first. If it lasts, the API server refuses them; the condition says why.",
    )
    HoldRecordTooLarge = (
        "What must be remembered of the next step does not fit into 64 KiB.",
        "Run fewer stream threads per pod.",
    )
    HoldRecordUnreadable = (
        "The hold record on the StatefulSet cannot be understood; it may hide a step that is not finished.",
        "If no pod is stopping and the group is stable, remove the annotation `streamapp.dev/hold-record`.",
    )

    # Facts are missing, old or at odds.

    FactsStale = (
        "Kubernetes or the group was last read too long ago to remove anything on its word.",
        "If it lasts, look at the operator: it is slow or short of CPU.",
    )
    BrokersUnreachable = (
        "The brokers did not answer.",
        "Check `kafka.bootstrapServers`, the client properties and the network policy.",
    )
    GroupProtocolUnsupported = (
        "The group is not a Kafka Streams application on the classic group protocol, or it is changing over.",
        "Only growing works; keep `group.protocol=classic` to have scale-downs held and covered.",
    )
    GroupUndecodable = (
        "A member's subscription or assignment could not be decoded.",
        "If the application's version is new, upgrade the operator.",
    )
    GroupEmpty = (
        "Nobody is in the consumer group.",
        "Look at the pods' logs: no instance joined, or all of them left.",
    )
    GroupRebalancing = (
        "The group is not stable.",
        "If it lasts, a member joins and leaves again and again, or one holds up the rebalance.",
    )
    FollowUpScheduled = (
        "The group has not converged: the assignor has scheduled another rebalance to move tasks.",
        "Nothing is to be done; it is brought forward by a nudge where nudges are allowed.",
    )
    TaskUnassigned = (
        "A task of the topology is active nowhere: it is on its way from one pod to another, or nobody took it.",
        "If it lasts, compare `spec.topology` with what the application really runs.",
    )
    TaskAssignedTwice = (
        "A task is active on two members.",
        "If it lasts, two versions of the application disagree; look at the members named in the message.",
    )
    TaskNotInTopology = (
        "The group runs a task that the known topology does not have.",
        "Renew `spec.topology` with the output of `Topology#describe()` of the running version.",
    )
    ForeignMember = (
        "The group has a member that no pod of this StreamApp accounts for.",
        "Find out who runs with the same application ID at the host that the message names.",
    )
    NudgeLeftOver = "A phantom member of an earlier nudge is still in the group; it is removed."
    ProcessIdDoubled = (
        "Two pods run with the same process ID, and Kafka Streams takes them for one.",
        "A volume was copied with its process file: remove `kafka-streams-process-metadata` from one of them.",
    )
    ProcessIdMismatch = (
        "A pod runs with another process ID than its volume had, or under another ordinal's.",
        "Find out whether the volume was replaced or the state directory moved; the ID recorded on the claim is in the "
        "message.",
    )
    ProcessIdUnrecorded = (
        "The process ID of a pod is not recorded on its volume claim yet.",
        "Nothing is to be done; it is recorded as soon as the pod shows one.",
    )

    # Agents, and learners on demand.

    AgentDisabled = (
        "Learners on demand need an agent in every pod, and the StreamApp has none.",
        "Enable the StreamApp's agent, or choose another source of learners.",
    )
    AgentSilent = (
        "Not every pod's agent gives fresh and complete answers, so that there are no learners on demand.",
        "Look at the log of the pod that the message names, and at whether the operator may reach its agent's port.",
    )
    AgentReportsPending = (
        "Every agent has to be heard twice before it is gone by.",
        "Nothing is to be done; a pod that has just started is heard again in a moment.",
    )
    AgentsDisagree = (
        "An agent and the brokers do not say the same about who holds what.",
        "Nothing is to be done right after a rebalance; if it lasts, look at the pod that the message names.",
    )
    AssignorMixed = (
        "The learner task assignor is at work in some pods and not in others; learners are on demand only where it is "
        "in all.",
        "Finish the rollout; if it is finished, look at the cause in the message.",
    )
    OlderStreams = (
        "The application's Kafka Streams is older than 3.8 and takes no other task assignor.",
        "Upgrade Kafka Streams, or keep standbys (`num.standby.replicas`).",
    )
    OwnAssignor = (
        "The application sets a task assignor of its own, which is left in place.",
        "Remove that setting from its configuration, or keep standbys and say so with `learners.assignor`.",
    )
    StreamsProtocol = (
        "The application uses the streams group protocol, where the brokers assign.",
        "Keep `group.protocol=classic` to have learners on demand.",
    )
    UnknownLoader = (
        "The agent could not put the task assignor where the application's class loader finds it.",
        "Add the assignor to the application's own class path as a library, or keep standbys.",
    )
    AssignorSwitchedOff = (
        "The task assignor is not among the defaults that the agent may give.",
        "Allow the StreamApp's agent to set the assignor, or choose another source of learners.",
    )
    AgentFailed = (
        "The agent failed to set the task assignor.",
        "Look at the cause in the message; the application itself is not touched by it.",
    )
    RecoveryLagUnclear = (
        "Not every pod tells its `acceptable.recovery.lag`, or pods of one template tell different ones.",
        "Set it alike for all pods; the application's leader goes by its own setting.",
    )
    RecoveryLagUnbounded = (
        "The application's `acceptable.recovery.lag` has no bound: its tasks move to copies that hold nothing.",
        "Set `acceptable.recovery.lag` to a number of records, 10000 by default.",
    )
    LearnersWanted = "Which processes leave has changed, and the agents are told."
    NobodyLeaves = "No process leaves any more, and the agents are told."
    AnnouncementRenewed = "The agents are told again which processes leave, before the announcement expires."
    AnnouncementPending = (
        "Not every agent has heard yet which processes leave.",
        "Nothing is to be done; if it lasts, look at the agent of the pod that the message names.",
    )
    AnnouncementNotFollowed = (
        "The last assignment was made before the group's leader had heard which processes leave.",
        "Nothing is to be done; a nudge brings the next one about. Without nudges it comes with the next rebalance.",
    )
    DiskRoomUnknown = (
        "Whether the volumes of the pods that stay have room for learners is not known, and was not checked.",
        "Nothing is to be done if you know that they have; it is checked where agents tell the room of their volume.",
    )

    MaxIdleTimeTooLong = (
        "State may lie unused for longer than a changelog keeps what it missed: deleted keys can come back to life.",
        "Make `state.maxIdleTime` shorter than the setting that the message names, or raise that setting of the topic.",
    )

    # Coverage is not there, or cannot be known.

    TopologyUnknown = (
        "It is not known which tasks the application has and which of them have state.",
        "Put the output of `Topology#describe()` into `spec.topology`.",
    )
    AssignorUnknown = (
        "It is not known whether the application moves tasks to caught-up copies only.",
        "Declare `learners.assignor: HighAvailability` if it runs the default assignor.",
    )
    PositionsUnknown = (
        "The positions that the group shows are from a rebalance that this operator did not watch.",
        "Nothing is to be done; the next nudge renews them.",
    )
    NudgeDisabled = (
        "Without `learners.triggerRebalance` positions are never fresh, so that no copy is known to be caught up.",
        "Set `learners.triggerRebalance` to true, or override coverage for this hold with the annotation "
        "`streamapp.dev/override`.",
    )
    NudgeImpossible = (
        "A group of one member cannot be nudged, so that nobody can tell how far it is.",
        "Nothing is to be done while that pod stays.",
    )
    EndOffsetsUnread = (
        "The end of a changelog could not be read.",
        "Check the operator's right to describe the changelog topics.",
    )
    LagUnknown = (
        "The lag of a copy cannot be told.",
        "Look at the task and the cause in the message.",
    )
    NoLearners = (
        "A stateful task has no copy on any pod that stays, and the application makes none.",
        "Set `num.standby.replicas` to at least 1, or override coverage for this hold with the annotation "
        "`streamapp.dev/override`.",
    )
    LearnersCatchingUp = (
        "Copies on the pods that stay are still behind.",
        "Nothing is to be done; the message says how far and how long still.",
    )
    LagLimitBelowRate = (
        "More is written during one reading than `acceptableRecoveryLag` allows: no copy can be seen caught up.",
        "Raise `learners.acceptableRecoveryLag` together with the application's own `acceptable.recovery.lag`.",
    )
    TasksReadyToMove = (
        "Learners have caught up; the next rebalance moves their tasks off the pods that leave.",
        "Nothing is to be done; it is brought about by a nudge where nudges are allowed.",
    )
    LearnersNotPlaced = (
        "A task of a leaving pod has no learner on a pod that stays yet.",
        "Nothing is to be done: the assignor makes a few at a time; if it lasts, look at the leader's log.",
    )
    Draining = (
        "Tasks are on their way off the pods that leave.",
        "If it lasts, look at the pods and tasks named in the message.",
    )
    NoRoomForLearners = (
        "The volumes of the pods that stay have no room for the state of those that leave; no learner is made.",
        "Raise the size of the volumes, or remove what does not belong there.",
    )
    NoProgress = (
        "The hold made no progress for `scaleDown.timeout`.",
        "Look at the slowest task in the message: its copy does not come nearer to the end.",
    )
    ReadingsPending = "Coverage has to be seen in two fresh readings in a row, at least ten seconds apart."
    GroupChanged = (
        "Members or tasks changed between two readings; both are taken anew.",
        "If it lasts, members join and leave all the time.",
    )

    # What drives the replicas.

    ScalingInOrder = "What drives the replicas is in order, as far as it can be seen."
    AutoscalerAimsAtStatefulSet = (
        "An autoscaler scales the StatefulSet past the StreamApp: what it removes is not held.",
        "Let its `scaleTargetRef` name the StreamApp, with the apiVersion streamapp.dev/v1alpha1.",
    )
    TwoWritersOfReplicas = (
        "An autoscaler drives `spec.replicas`, and somebody else writes it too: each undoes what the other wrote.",
        "Leave `spec.replicas` out of what the others apply, as docs/autoscaling.md says, or delete the autoscaler.",
    )
    AutoscalerCannotAct = ("The autoscaler does not scale at present, and says why.", "Mend what its message names.")
    IdlePods = (
        "There are more pods than tasks; those without a task process nothing, however high the load.",
        "Wish for fewer, lower the autoscaler's `maxReplicas`, or have more partitions.",
    )
    AutoscalerExceedsTasks = (
        "The autoscaler may wish for more pods than there are tasks; those would process nothing.",
        "Set its `maxReplicas` to the number of tasks at most.",
    )
    AutoscalersUnread = (
        "Whether autoscalers drive the replicas, and how, is not known; nothing waits for that.",
        "If the message names a right, grant it to the operator's service account, or go on without.",
    )

    # Rollouts.

    RolloutPaused = (
        "Pods have an older template, and `rollout.policy: Paused` keeps them as they are.",
        "Set `rollout.policy` to Covered when they may be restarted.",
    )
    RolloutPodNotRunning = (
        "A pod with the newest template does not run, or is not ready; no other pod is restarted.",
        "Look at that pod; if its image is bad, change the template.",
    )
    RestartCovered = "Every stateful task runs on, or has a caught-up copy on, another pod; one pod is restarted."
    RestartOfIdlePod = "A pod that does not run and holds nothing is replaced."
    RestartDrained = "The pod holds no task any more, and every stateful task is covered without it; it is restarted."
    RestartWithoutLearners = (
        "The application has no standbys, so that no restart can be covered; one pod is restarted, with its volume, "
        "after all tasks were seen running.",
        "Set `num.standby.replicas` to at least 1 to have restarts covered.",
    )
    RestartUncovered = "`rollout.policy: Immediate` restarts pods one by one without asking for coverage."

    # Convergence.

    Converged = (
        "The group is stable, nothing is scheduled, every task runs, every copy is caught up, every pod is ready."
    )
    TasksRestoring = (
        "Tasks are assigned, but not seen running yet.",
        "Nothing is to be done; the message names the slowest.",
    )
    WishPending = "What is granted is not yet what is wished for."
    PodsNotReady = (
        "Fewer pods are ready than are granted.",
        "Look at the pods that are not.",
    )
    PodNotInGroup = (
        "A pod is ready, but has no member in the group.",
        "If it lasts, look at its log: it may still start, or have another application ID.",
    )
    LearnersOnDemand = "The assignor in all pods makes copies when they are needed, and moves tasks before a pod goes."
    StandbysDetected = "Stateful tasks have standbys."
    LearnersNotDetected = "Whether the application has standbys can be seen only while it is converged."
    NoStatefulTasks = "No task has state, so none needs a copy."
    IdentityHolds = "Every pod runs with the process ID that its volume has."
    NoStateOnDisk = "The application keeps no state on disk, so that a pod is a new process at every start."
    KafkaAnswers = "The brokers answered the last question."
    StepOpen = "Replicas were taken away; the step is not finished."
    StepClosed = "The pod is gone, its members have left, and every task runs."
    ContainerEnded = (
        "The container is known to have ended; its members are taken out of the group, so that nobody waits for them."
    )
