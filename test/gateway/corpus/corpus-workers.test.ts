import { startCorpusProcesses } from './gateway.ts'
import { testCorpus } from './run.ts'

testCorpus((options) => startCorpusProcesses({ ...options, workers: 2 }))
