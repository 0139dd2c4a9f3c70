package dev.streamapp.agent.instance;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.streamapp.agent.instance.TaskMetrics.Task;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TaskMetricsTest {

    @Test
    void theMetricsOfATaskTellItsRoleAndState() {
        TaskMetrics tasks = new TaskMetrics();
        for (String metric : List.of("restore-total", "restore-remaining-records-total", "process-total", "punctuate-rate")) {
            tasks.add("0_0", metric);
        }
        tasks.add("0_1", "restore-total");
        tasks.add("1_0", "update-rate");
        tasks.add("1_0", "update-total");
        tasks.add("1_1", "dropped-records-total");
        assertEquals(List.of(new Task("0_0", true, "running"), new Task("0_1", true, "restoring"), new Task("1_0", false, null)), tasks.tasks());
    }

    @Test
    void storesAreFoundInTheSubtopologyThatHasThem() {
        String description = """
                Topologies:
                   Sub-topology: 0
                    Source: KSTREAM-SOURCE-0000000000 (topics: [input])
                      --> KSTREAM-AGGREGATE-0000000001
                    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [counts, others])
                      --> none
                  Sub-topology: 1 for global store (will not generate tasks)
                    Processor: KTABLE-SOURCE-0000000005 (stores: [world])
                  Sub-topology: 12
                    Processor: KSTREAM-FILTER-0000000007 (stores: [])
                    Processor: KSTREAM-JOIN-0000000008 (stores: [table-1])
                """;
        assertEquals(Map.of("counts", "0", "others", "0", "table-1", "12"), TaskMetrics.subtopologies(description));
    }
}
