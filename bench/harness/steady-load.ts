import { setTimeout as delay } from 'node:timers/promises'
import { answerCalls } from './calls.ts'
import { createWire, type Wire } from './wire.ts'

/**
 * One request again and again at a steady rate, however long answers take (open loop), until it is told to stop. A
 * latency begins when the request was due: what a slow answer holds up counts too.
 */
export type Steady = {
  port: number
  perSecond: number
  /** As it goes over the wire. */
  request: string
  bodyIncludes: string
}

/** By the phase in which the request was due: latencies in ms, and what went wrong. */
export type Phases = Record<string, { latencies: number[]; failures: string[] }>

let phase = ''
let stopped = false
let done: Promise<void> = Promise.resolve()
const phases: Phases = {}

const run = async ({ port, perSecond, request, bodyIncludes }: Steady): Promise<void> => {
  const idle: Wire[] = []
  const underWay = new Set<Promise<void>>()
  const begun = performance.now()
  const one = async (due: number) => {
    const noted = phases[phase] ?? { latencies: [], failures: [] }
    phases[phase] = noted
    // The one that was idle for longest, so that none is for so long that the server closes it.
    const wire = idle.shift() ?? createWire(port)
    try {
      const { status, body } = await wire.send(request)
      noted.latencies.push(performance.now() - due)
      idle.push(wire)
      if (status !== 200 || !body.includes(bodyIncludes)) noted.failures.push(`${status} ${body}`)
    } catch (error) {
      noted.failures.push(String(error))
      wire.close()
    }
  }
  for (let number = 0; !stopped; number++) {
    const due = begun + (number * 1000) / perSecond
    const ahead = due - performance.now()
    if (ahead > 0) await delay(ahead)
    const work: Promise<void> = one(due).finally(() => underWay.delete(work))
    underWay.add(work)
  }
  await Promise.all(underWay)
  for (const wire of idle) wire.close()
}

answerCalls({
  start: () => {},
  begin: (load: Steady) => {
    done = run(load)
  },
  phase: (name: string) => {
    phase = name
  },
  end: async (): Promise<Phases> => {
    stopped = true
    await done
    return phases
  },
})
