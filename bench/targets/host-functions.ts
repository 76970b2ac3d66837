import { parentPort } from 'node:worker_threads'
import { loadBuiltins } from '../../policies/engine/builtins/index.ts'
import { hostileCalls } from '../../test/policies/engine/hostile/calls.ts'
import { type Measured, measure } from '../../test/policies/engine/hostile/measure.ts'

/** What the thread is asked: the number of a call in the list, which it is asked for once. */
export type HostFunctionsQuestion = number

/** First that the operands are made, and then how much of the processor the function took with them, in ms. */
export type HostFunctionsAnswer = 'begins' | (Measured & { ms: number })

const builtins = await loadBuiltins(['graphql.parse'])

parentPort?.on('message', (index: HostFunctionsQuestion) => {
  const call = hostileCalls[index]
  if (!call) throw new Error(`there is no call ${index}`)
  const operands = call.operands()
  parentPort?.postMessage('begins' satisfies HostFunctionsAnswer)
  const before = process.threadCpuUsage()
  const measured = measure(builtins, { ...call, operands: () => operands })
  const { user, system } = process.threadCpuUsage(before)
  const answer: HostFunctionsAnswer = { ...measured, ms: (user + system) / 1_000 }
  parentPort?.postMessage(answer)
})
