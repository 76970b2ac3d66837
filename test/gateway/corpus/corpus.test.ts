import { startCorpusGateway } from './gateway.ts'
import { testCorpus } from './run.ts'

testCorpus(startCorpusGateway)
