package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.List;

/**
 * Places the stateless tasks. They keep their owner, leave a leaving one at once, and even out the loads of the stateful tasks.
 *
 * <p>The loads are those after the learning ends, so a stateless task does not move back and forth meanwhile.
 */
final class StatelessTaskPlacement {

    private final AssignmentDraft draft;
    private final long[] load;

    StatelessTaskPlacement(AssignmentDraft draft) {
        this.draft = draft;
        this.load = draft.load.clone();
    }

    /**
     * Give every stateless task an active process.
     *
     * @param frozen no task that has an owner leaves it
     * @param balanced tasks also move for the sake of balance
     */
    void place(boolean frozen, boolean balanced) {
        List<Integer> unowned = new ArrayList<>();
        for (int task = 0; task < draft.tasks.length; task++) {
            if (!draft.isStateful(task)) {
                int owner = draft.owner[task];
                if (owner != AssignmentDraft.NONE && (frozen || draft.stays[owner])) {
                    setTarget(task, owner);
                } else {
                    unowned.add(task);
                }
            }
        }
        unowned.forEach(task -> setTarget(task, draft.roomiest(task, load, process -> draft.stays[process])));
        if (balanced) {
            new TaskBalancer(draft, load, task -> !draft.isStateful(task), this::setTarget).balance();
        }
        for (int task = 0; task < draft.tasks.length; task++) {
            if (!draft.isStateful(task)) {
                draft.setActive(task, draft.target[task], why(task));
            }
        }
    }

    private void setTarget(int task, int process) {
        if (draft.target[task] != AssignmentDraft.NONE) {
            load[draft.target[task]] -= draft.tasks[task].weight();
        }
        load[process] += draft.tasks[task].weight();
        draft.setTarget(task, process);
    }

    private String why(int task) {
        int owner = draft.owner[task];
        if (owner == AssignmentDraft.NONE) {
            return "orphan without state, by room";
        }
        return draft.stays[owner] ? "balance, it has no state" : "its owner leaves, it has no state";
    }
}
