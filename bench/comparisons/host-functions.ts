import { Worker } from 'node:worker_threads'
import { type HostileCall, hostileCalls } from '../../test/policies/engine/hostile/calls.ts'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { Stage } from '../harness/stage.ts'
import type { HostFunctionsAnswer, HostFunctionsQuestion } from '../targets/host-functions.ts'

/** No call may keep the thread that decides longer. Ms of the processor. */
const atMostMs = 100
/** A call that takes so long is ended, with its thread. Ms. */
const givenUpMs = 10_000
const shown = 15

/**
 * How much of the processor built-in functions of policies take, called with operands of up to 64 kB that are made to
 * take long (`test/policies/engine/hostile`), each for the first time in its thread. What ends them is units, not time.
 */
export const hostFunctions: Comparison = {
  name: 'host-functions',
  title: 'Built-in functions of policies, called to take long',
  async run(stage, _settings, progress) {
    const ask = createAsker(stage)
    const results: Result[] = []
    for (const [index, call] of hostileCalls.entries()) {
      if (index % 50 === 0) progress(`call ${index} of ${hostileCalls.length}`)
      results.push({ call, ...(await ask(index)) })
    }
    return page(results)
  },
}

type Answer = { outcome: string; units: number; ms: number }
type Result = Answer & { call: HostileCall }

const createAsker = (stage: Stage): ((index: number) => Promise<Answer>) => {
  let thread: Worker | undefined
  stage.onStop(async () => void (await thread?.terminate()))
  return async (index) => {
    thread ??= new Worker(new URL('../targets/host-functions.ts', import.meta.url))
    const asked = thread
    const answer = await new Promise<Answer>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const heard = (said: HostFunctionsAnswer): void => {
        if (said === 'begins') {
          timer = setTimeout(() => {
            thread = undefined
            void asked.terminate()
            resolve({ outcome: 'ended', units: Number.NaN, ms: givenUpMs })
          }, givenUpMs)
          return
        }
        clearTimeout(timer)
        asked.off('message', heard)
        asked.off('error', reject)
        resolve(said)
      }
      asked.on('message', heard)
      asked.on('error', reject)
      asked.postMessage(index satisfies HostFunctionsQuestion)
    })
    return answer
  }
}

const page = (results: readonly Result[]): Page => {
  const slowest = results.toSorted((a, b) => b.ms - a.ms)
  const missed = results.filter(({ ms }) => ms > atMostMs).length
  return {
    tables: [
      [
        ['calls', `above ${atMostMs} ms`, 'bar', ''],
        [String(results.length), String(missed), '0', missed === 0 ? 'met' : 'MISSED'],
      ],
      [
        [`the ${shown} that take longest`, 'ms', 'units', 'outcome'],
        ...slowest
          .slice(0, shown)
          .map(({ call, ms, units, outcome }) => [
            `\`${call.builtin}\`: ${call.name}`,
            ms.toFixed(0),
            String(units),
            outcome,
          ]),
      ],
    ],
    figures: results.map(({ call, ...measured }) => ({ builtin: call.builtin, name: call.name, ...measured })),
  }
}
