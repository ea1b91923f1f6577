"""The corpus: importing this package registers every family."""

import tests.score.families.faults_box
import tests.score.families.faults_contention
import tests.score.families.faults_driver
import tests.score.families.faults_memory
import tests.score.families.faults_power
import tests.score.families.healthy_box
import tests.score.families.healthy_gpu
import tests.score.families.healthy_memory  # noqa: F401 - each registers what it holds
