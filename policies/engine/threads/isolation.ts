import { PolicyBusy, PolicyError } from '../base/policy-error.ts'
import {
  type Entrypoint,
  type EntrypointOptions,
  entrypointTable,
  inputText,
  resultOf,
} from '../evaluate/entrypoints.ts'
import type { PreparedEngine } from '../instance/runner.ts'
import { type Answer, missed, type PolicyThread, patience, type Question, startThread } from './policy-thread.ts'

/**
 * A compiled policy in threads of its own, for rules whose time is not known to be short: an evaluation that misses its
 * deadline is ended with its thread, which nothing else can do to WebAssembly, and another thread takes its place. What
 * was answered lately needs no thread.
 */
export interface Isolation {
  /**
   * As `PolicySet.evaluate`. Rejects with `PolicyError` when it failed or missed its deadline, with `PolicyBusy` when
   * no thread came free.
   */
  evaluate(entrypoint: string, input: unknown): Promise<unknown>
  /** Lets what was asked come to its end, then stops the threads. */
  close(): Promise<void>
}

export interface IsolationOptions {
  /** Threads. Default 2: one can always serve the others while rules that run away keep one busy. */
  workers?: number
  /**
   * Of one evaluation: processor time of its thread, so that a busy or throttled machine ends nothing that would have
   * been quick; by the clock four times that, and six times for waiting for a thread. (Where Node cannot tell, before
   * 24.6, the clock alone counts.) ms. Default 50.
   */
  deadline?: number
  /** Evaluations waiting; more are refused. Default 1 000. */
  queue?: number
  /** Evaluations handed to a thread at once, which then share one deadline and one fate. Default 1; more is cheaper. */
  batch?: number
  /**
   * How far the threads step back where others need the processor, 0 to 19 (Linux only). Default 5: about a third of a
   * share.
   */
  nice?: number
}

interface Task {
  entrypoint: string
  asked: Entrypoint
  input: string | undefined
  /** A brief attempt was not enough: see `Suspect`. */
  tried: boolean
  /** `performance.now()` after which it is not begun any more. */
  giveUp: number
  resolve: (value: unknown) => void
  reject: (error: PolicyError) => void
}

interface Place {
  thread: PolicyThread
  running: Task[]
}

/**
 * An entrypoint that recently missed a deadline. It may not take the last free thread. It runs under a time limit that
 * costs no thread: first briefly, then for a whole deadline. After a failed attempt it pauses from that kind, so it
 * uses at most a tenth of a processor.
 */
interface Suspect {
  /** `performance.now()` from which on it may be attempted briefly, or for a whole deadline, and is suspect no more. */
  brieflyFrom: number
  wholeFrom: number
  until: number
}

const suspectFor = 10_000
/** Of a deadline. */
const briefly = 1 / 20
/** How many times as long as an attempt that was for nothing. */
const restFactor = 20
/** Of a deadline: who was cut short with less processor time than this has missed none, but the machine is busy. */
const nearly = 0.9
const slowestRestart = 5_000
/** How many deadlines whoever waits for a thread may wait: longer than one takes to be ended. */
const waitingPatience = patience + 2

/** Resolves when every thread is ready; rejects with `PolicyError` when the policy cannot be started. */
export const startIsolation = async (
  options: IsolationOptions &
    EntrypointOptions & {
      prepared: PreparedEngine
      print?: (line: string) => void
      /** Called for each evaluation that missed its deadline. */
      onRunaway?: ((entrypoint: string) => void) | undefined
    },
): Promise<Isolation> => {
  const { prepared, workers = 2, deadline = 50, queue = 1_000, batch = 1, nice = 5, print, onRunaway } = options
  const named = entrypointTable(prepared.image.entrypoints, options)

  const places = new Set<Place>()
  const idle: Place[] = []
  const waiting: Task[] = []
  const suspects = new Map<string, Suspect>()
  const brief = Math.max(1, Math.round(deadline * briefly))
  let closed = false
  let failedStarts = 0
  let timer: NodeJS.Timeout | undefined
  let drained: (() => void) | undefined

  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const running: Task[] = []
      const thread = startThread({
        prepared,
        nice,
        deadline,
        print,
        onReady() {
          failedStarts = 0
          idle.push(place)
          resolve()
          dispatch()
        },
        onReplies(replies) {
          idle.push(place)
          for (const [index, task] of place.running.splice(0).entries()) {
            const reply = replies[index]!
            if ('spent' in reply) onCutShort(task, reply.spent)
            else settle(task, reply)
          }
          dispatch()
        },
        onEnd(error, ranAway) {
          if (ranAway) for (const { entrypoint } of place.running) onMissed(entrypoint)
          leave(place, error)
          reject(error)
          restart()
          dispatch()
        },
      })
      const place = { thread, running }
      places.add(place)
    })

  /** At once after an evaluation ran away; less and less often when threads do not even start. */
  const restart = (): void => {
    if (closed) return
    const pause = failedStarts === 0 ? 0 : Math.min(slowestRestart, 50 * 2 ** failedStarts)
    failedStarts++
    setTimeout(() => closed || start().catch(() => {}), pause).unref()
  }

  const onMissed = (entrypoint: string): void => {
    const now = performance.now()
    suspects.set(entrypoint, { brieflyFrom: now, wholeFrom: now + restFactor * deadline, until: now + suspectFor })
    onRunaway?.(entrypoint)
  }

  const onCutShort = (task: Task, spent: number): void => {
    if (task.tried) {
      onMissed(task.entrypoint)
      task.reject(spent < nearly * deadline ? busy() : missed(deadline))
      return
    }
    const suspect = suspects.get(task.entrypoint)
    if (suspect) suspect.brieflyFrom = performance.now() + restFactor * brief
    task.tried = true
    // In front: it has waited longer than the others.
    waiting.unshift(task)
  }

  const leave = (place: Place, error: PolicyError): void => {
    places.delete(place)
    const at = idle.indexOf(place)
    if (at !== -1) idle.splice(at, 1)
    for (const task of place.running.splice(0)) task.reject(error)
  }

  const mayBegin = ({ entrypoint, tried }: Task, now: number): boolean => {
    const suspect = suspects.get(entrypoint)
    if (!suspect) return true
    if (now > suspect.until) return suspects.delete(entrypoint)
    return now >= (tried ? suspect.wholeFrom : suspect.brieflyFrom) && (idle.length > 1 || workers === 1)
  }

  const nextBatch = (now: number): Task[] => {
    const first = waiting.findIndex((task) => mayBegin(task, now))
    if (first === -1) return []
    // With a batch of more than one, suspects go alone: what they are with would share their end.
    const alone = suspects.has(waiting[first]!.entrypoint)
    let end = first + 1
    while (!alone && end - first < batch && end < waiting.length && !suspects.has(waiting[end]!.entrypoint)) end++
    return waiting.splice(first, end - first)
  }

  const questionOf = ({ entrypoint, asked, input, tried }: Task): Question => ({
    entrypoint: asked.id,
    input,
    within: suspects.has(entrypoint) ? (tried ? deadline : brief) : undefined,
  })

  const dispatch = (): void => {
    const now = performance.now()
    // In the order of their limits, since all wait equally long.
    while (waiting.length > 0 && waiting[0]!.giveUp < now) waiting.shift()!.reject(busy())
    while (idle.length > 0 && waiting.length > 0) {
      const tasks = nextBatch(now)
      if (tasks.length === 0) break
      const place = idle.pop()!
      place.running.push(...tasks)
      place.thread.ask(tasks.map(questionOf))
    }
    if (waiting.length === 0) {
      if (drained && idle.length === places.size) drained()
    } else if (!timer) {
      timer = setTimeout(
        () => {
          timer = undefined
          dispatch()
        },
        Math.min(deadline, 10),
      )
    }
  }

  const busy = () => new PolicyBusy('no thread came free for the policy in time')

  const close = async (): Promise<void> => {
    if (closed) return
    closed = true
    if (waiting.length > 0 || idle.length < places.size) {
      await new Promise<void>((resolve) => {
        drained = resolve
        setTimeout(resolve, 2 * patience * deadline)
      })
    }
    clearTimeout(timer)
    for (const task of waiting.splice(0)) task.reject(new PolicyBusy('the policies were replaced'))
    await Promise.all(
      [...places].map((place) => {
        leave(place, new PolicyError('the policies were replaced'))
        return place.thread.end()
      }),
    )
  }

  try {
    await Promise.all(Array.from({ length: workers }, start))
  } catch (error) {
    await close()
    throw error
  }
  return {
    evaluate: (entrypoint, input) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(busy())
        const asked = named(entrypoint)
        const text = inputText(input, asked)
        const known = text === undefined ? undefined : asked.known?.get(text)
        if (known !== undefined) return resolve(resultOf(known))
        if (waiting.length >= queue) return reject(busy())
        waiting.push({
          entrypoint,
          input: text,
          asked,
          tried: false,
          giveUp: performance.now() + waitingPatience * deadline,
          resolve,
          reject,
        })
        dispatch()
      }),
    close,
  }
}

const settle = ({ input, asked, resolve, reject }: Task, reply: Answer): void => {
  if ('error' in reply) {
    reject(new PolicyError(reply.error))
    return
  }
  if (reply.repeatable && input !== undefined) asked.known?.set(input, reply.text)
  resolve(resultOf(reply.text))
}
