import { PolicyBusy, PolicyError, UnitsUsedUp } from '../base/policy-error.ts'
import {
  type Entrypoint,
  type EntrypointOptions,
  entrypointTable,
  inputText,
  resultOf,
} from '../evaluate/entrypoints.ts'
import type { EngineLimits, PreparedEngine } from '../instance/runner.ts'
import { mostUnits } from '../wasm/meter.ts'
import { type Answer, type PolicyThread, patience, type Question, startThread } from './policy-thread.ts'

/**
 * A compiled policy in threads of its own, for rules that may use more than the thread of the requests has for them. An
 * evaluation ends when its units are used up; one that is still there after twice its deadline, in a function of the
 * host, is ended with its thread, and another thread takes its place. What was answered lately needs no thread.
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
   * Of one evaluation, in ms. Its thread is ended after twice as much processor time, so that a busy or throttled
   * machine ends nothing that would have been quick; by the clock after four times. (Where Node cannot tell, before
   * 24.6, the clock alone counts.) Who waits for a thread waits up to six times as long. Default 50.
   */
  deadline?: number
  /** What an evaluation may spend. Default 400 000 for each ms of the deadline. */
  units?: number
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
  /** Those it was begun with. */
  units: number
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
 * An entrypoint that lately used up all units of an evaluation. It may not take the last free thread. While it rests
 * it is evaluated with few units only, which is plenty for every input that does no harm, and seldom again after they
 * were too few; so it uses at most a tenth of a processor.
 */
interface Suspect {
  /** `performance.now()` from which on it has few units, all of them, and is suspect no more. */
  fewFrom: number
  allFrom: number
  until: number
}

const suspectFor = 10_000
/** The part of all units that are few. */
const few = 1 / 20
/** How many times as long as what was for nothing. */
const restFactor = 20
const slowestRestart = 5_000
/** How many deadlines a thread has, and whoever waits for one: longer than one takes by the clock. */
const threadPatience = 2
const waitingPatience = 6

/** What an evaluation in a thread may spend unless told otherwise. @param deadline ms */
export const unitsOfDeadline = (deadline: number): number => Math.min(mostUnits, Math.round(deadline * 400_000))

/** Resolves when every thread is ready; rejects with `PolicyError` when the policy cannot be started. */
export const startIsolation = async (
  options: IsolationOptions &
    EntrypointOptions & {
      prepared: PreparedEngine
      /** Of input and result. */
      limits?: Partial<EngineLimits> | undefined
      print?: (line: string) => void
      /** Called for each evaluation that used up its units, or whose thread had to be ended. */
      onRunaway?: ((entrypoint: string) => void) | undefined
    },
): Promise<Isolation> => {
  const { prepared, limits = {}, workers = 2, deadline = 50, queue = 1_000, batch = 1, nice = 5, print } = options
  const { onRunaway } = options
  const named = entrypointTable(prepared.image.entrypoints, options)

  const places = new Set<Place>()
  const idle: Place[] = []
  const waiting: Task[] = []
  const suspects = new Map<string, Suspect>()
  const { units: all = unitsOfDeadline(deadline) } = options
  let closed = false
  let failedStarts = 0
  let timer: NodeJS.Timeout | undefined
  let drained: (() => void) | undefined

  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const running: Task[] = []
      const thread = startThread({
        prepared,
        limits,
        nice,
        deadline: threadPatience * deadline,
        print,
        onReady() {
          failedStarts = 0
          idle.push(place)
          resolve()
          dispatch()
        },
        onAnswers(answers) {
          idle.push(place)
          for (const [index, task] of place.running.splice(0).entries()) {
            const answer = answers[index]!
            if ('usedUp' in answer) onUsedUp(task)
            else settle(task, answer)
          }
          dispatch()
        },
        onEnd(error, ranAway) {
          // Few units do not end what a function of the host does: that rests from every kind.
          if (ranAway) for (const { entrypoint } of place.running) suspect(entrypoint, restFactor * deadline)
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

  const suspect = (entrypoint: string, rest: number): void => {
    const now = performance.now()
    suspects.set(entrypoint, {
      fewFrom: now + rest,
      allFrom: now + restFactor * deadline,
      until: now + suspectFor,
    })
    onRunaway?.(entrypoint)
  }

  const onUsedUp = ({ entrypoint, units, reject }: Task): void => {
    if (units === all) {
      suspect(entrypoint, 0)
      reject(new UnitsUsedUp(all))
      return
    }
    const found = suspects.get(entrypoint)
    if (found) found.fewFrom = performance.now() + restFactor * few * deadline
    reject(busy())
  }

  const leave = (place: Place, error: PolicyError): void => {
    places.delete(place)
    const at = idle.indexOf(place)
    if (at !== -1) idle.splice(at, 1)
    for (const task of place.running.splice(0)) task.reject(error)
  }

  const mayBegin = ({ entrypoint }: Task, now: number): boolean => {
    const found = suspects.get(entrypoint)
    if (!found) return true
    if (now > found.until) return suspects.delete(entrypoint)
    return now >= found.fewFrom && (idle.length > 1 || workers === 1)
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

  const questionOf = (task: Task, now: number): Question => {
    task.units = now < (suspects.get(task.entrypoint)?.allFrom ?? 0) ? Math.ceil(few * all) : all
    return { entrypoint: task.asked.id, input: task.input, units: task.units }
  }

  const dispatch = (): void => {
    const now = performance.now()
    // In the order of their limits, since all wait equally long.
    while (waiting.length > 0 && waiting[0]!.giveUp < now) waiting.shift()!.reject(busy())
    while (idle.length > 0 && waiting.length > 0) {
      const tasks = nextBatch(now)
      if (tasks.length === 0) break
      const place = idle.pop()!
      place.running.push(...tasks)
      place.thread.ask(tasks.map((task) => questionOf(task, now)))
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
        setTimeout(resolve, 2 * threadPatience * patience * deadline)
      })
    }
    clearTimeout(timer)
    for (const task of waiting.splice(0)) task.reject(new PolicyBusy('the policies were replaced'))
    await Promise.all(
      [...places].map((place) => {
        leave(place, new PolicyError('the policies were replaced', { code: 'deadline_missed' }))
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
          units: all,
          giveUp: performance.now() + waitingPatience * deadline,
          resolve,
          reject,
        })
        dispatch()
      }),
    close,
  }
}

const settle = ({ input, asked, resolve, reject }: Task, reply: Exclude<Answer, { usedUp: number }>): void => {
  if ('error' in reply) {
    reject(new PolicyError(reply.error, { code: reply.code }))
    return
  }
  if (reply.repeatable && input !== undefined) asked.known?.set(input, reply.text)
  resolve(resultOf(reply.text))
}
