import type { QuickJSContext, QuickJSHandle, QuickJSRuntime, QuickJSWASMModule } from 'quickjs-emscripten-core'
import { maxResultBytes } from './claims-result.ts'
import { redactor } from './redact.ts'
import type { CallMessage, FetchedAnswer, FetchRequest, SandboxLimits, ScriptOutcome } from './sandbox-messages.ts'

/**
 * One call of a script in a JavaScript engine of its own, made for this call and thrown away after it: nothing that a script leaves behind
 * is there in the next. It holds the language and what `prelude` adds, and no object of the host.
 */
export interface SandboxCall {
  /** Never rejects. Once only. */
  run(call: CallMessage, fetch: (request: FetchRequest) => Promise<FetchedAnswer>): Promise<ScriptOutcome>
  /** What the script wrote to its console, without the values of its environment variables. */
  logs(): readonly string[]
  dispose(): void
}

/** Processor time of this thread where Node tells it, else time. In ms. */
const cpuNow: () => number =
  typeof process.threadCpuUsage === 'function'
    ? () => {
        const { user, system } = process.threadCpuUsage()
        return (user + system) / 1000
      }
    : () => performance.now()

const maxLogs = 20
/** Jobs that are run before the clock is looked at: each may be too short for the engine to ask. */
const jobsAtOnce = 64

/** Run before the script, so that it finds nothing changed. `host` has no way to anything but what is said to it. */
const prelude = `(host) => {
  const { parse, stringify } = JSON
  const { freeze, fromEntries, entries } = Object
  const text = (value) => {
    try { return typeof value === 'string' ? value : stringify(value) ?? String(value) } catch { return String(value) }
  }
  const describe = (error) => {
    try {
      if (typeof error !== 'object' || error === null) return text(error)
      const line = /getCustomJwtClaims\\.js:(\\d+)/.exec(String(error.stack))?.[1]
      return String(error.name ?? 'Error') + ': ' + String(error.message) + (line ? ' (line ' + line + ')' : '')
    } catch { return 'The script threw something that cannot be shown.' }
  }
  const waiting = []
  const fetch = (url, options = {}) => new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options ?? {}
    const plain = fromEntries(entries(headers).map(([name, value]) => [name, String(value)]))
    const number = waiting.push({ resolve, reject }) - 1
    host.fetch(number, stringify({ url: String(url), method: String(method), headers: plain, body: body == null ? undefined : String(body) }))
  })
  const fetched = (number, answer) => {
    const { resolve, reject } = waiting[number]
    const { failed, status, headers, body } = parse(answer)
    if (failed !== undefined) return reject(new TypeError(failed))
    resolve({ ok: status >= 200 && status < 300, status, headers, text: async () => body, json: async () => parse(body) })
  }
  const denyAccess = (message) => {
    host.deny(message === undefined ? '' : text(message))
    throw new Error('Access was denied.')
  }
  const log = (...values) => { host.log(values.map(text).join(' ')) }
  globalThis.console = freeze({ log, info: log, debug: log, warn: log, error: log })
  globalThis.fetch = fetch
  const call = async (script, input, environment) => {
    try {
      const { token, context } = parse(input)
      const returned = await script({ token, context, environmentVariables: parse(environment), api: freeze({ denyAccess, fetch }) })
      try {
        host.returned(stringify(returned))
      } catch (error) {
        host.failed('result', describe(error))
      }
    } catch (error) {
      host.failed('error', describe(error))
    }
  }
  return { call, fetched, describe }
}`

/** Made ahead of the call: most of what a call takes is making its engine. */
export const prepareCall = (engine: QuickJSWASMModule, limits: SandboxLimits): SandboxCall => {
  const runtime: QuickJSRuntime = engine.newRuntime({
    memoryLimitBytes: limits.heapBytes,
    maxStackSizeBytes: limits.stackBytes,
  })
  let deadline = Number.POSITIVE_INFINITY
  const isOver = () => cpuNow() > deadline
  runtime.setInterruptHandler(isOver)
  const context = runtime.newContext()

  const logged: string[] = []
  let outcome: ScriptOutcome | undefined
  let settled: (() => void) | undefined
  let askFetch: ((number: number, request: FetchRequest) => void) | undefined
  let underWay = 0

  const settle = (found: ScriptOutcome) => {
    // A refusal stands, whatever the script does then; otherwise what came first.
    if (outcome === undefined || ('denied' in found && !('denied' in outcome))) outcome = found
    settled?.()
  }

  const textOf = (handle: QuickJSHandle | undefined) =>
    handle && context.typeof(handle) === 'string' ? context.getString(handle) : undefined

  const host: Record<string, (...handles: QuickJSHandle[]) => void> = {
    deny: (message) => settle({ denied: textOf(message) ?? '' }),
    log: (message) => void (logged.length < maxLogs && logged.push(textOf(message) ?? '')),
    failed: (kind, message) =>
      settle({ failed: textOf(kind) === 'result' ? 'result' : 'error', message: textOf(message) ?? '' }),
    returned: (json) => {
      const isLong = context.typeof(json!) === 'string' && lengthOf(context, json!) > maxResultBytes
      if (isLong) settle({ failed: 'result', message: `It returned more than ${maxResultBytes} bytes of JSON.` })
      else settle({ returned: textOf(json) })
    },
    fetch: (number, request) => askFetch?.(context.getNumber(number!), JSON.parse(textOf(request)!)),
  }

  const { call, fetched, describe } = context
    .unwrapResult(context.evalCode(prelude, 'prelude.js'))
    .consume((factory) => {
      const object = context.newObject()
      for (const [name, work] of Object.entries(host)) {
        context
          .newFunction(name, (...handles) => {
            work(...handles)
          })
          .consume((handle) => context.setProp(object, name, handle))
      }
      const made = context.unwrapResult(context.callFunction(factory, context.undefined, object))
      object.dispose()
      const parts = {
        call: context.getProp(made, 'call'),
        fetched: context.getProp(made, 'fetched'),
        describe: context.getProp(made, 'describe'),
      }
      made.dispose()
      return parts
    })

  /** What went wrong outside of the script's own reach: beyond a limit there is nothing to ask the engine. */
  const failureOf = (error: QuickJSHandle): ScriptOutcome => {
    if (isOver()) return beyondCpu
    const shown = context.callFunction(describe, context.undefined, error)
    if (shown.error) {
      shown.error.dispose()
      return isOver() ? beyondCpu : { failed: 'memory', message: beyondMemory }
    }
    return { failed: 'error', message: shown.value.consume((handle) => textOf(handle) ?? '') }
  }

  const beyondCpu: ScriptOutcome = { failed: 'cpu', message: `It took more than ${limits.cpuMs} ms of processor time.` }

  /** Promise jobs, until there are none or the time is up. */
  const runJobs = () => {
    while (!outcome && runtime.hasPendingJob()) {
      const ran = runtime.executePendingJobs(jobsAtOnce)
      if (ran.error) return ran.error.consume((error) => settle(failureOf(error)))
      ran.dispose()
      if (isOver()) return settle(beyondCpu)
    }
    if (!outcome && underWay === 0) {
      settle(isOver() ? beyondCpu : { failed: 'unsettled', message: 'It waits for a promise that nothing settles.' })
    }
  }

  const load = (script: string): QuickJSHandle | undefined => {
    const loaded = context.evalCode(script, 'getCustomJwtClaims.js', { type: 'global' })
    if (loaded.error) return void loaded.error.consume((error) => settle(failureOf(error)))
    loaded.value.dispose()
    const found = context.evalCode('getCustomJwtClaims', 'lookup.js', { type: 'global' })
    if (found.error) found.error.dispose()
    else if (context.typeof(found.value) === 'function') return found.value
    else found.value.dispose()
    return void settle(
      isOver() ? beyondCpu : { failed: 'error', message: 'It does not define the function getCustomJwtClaims.' },
    )
  }

  const begin = ({ script, input, environmentVariables }: CallMessage) => {
    const loaded = load(script)
    if (!loaded) return
    if (input === undefined) {
      loaded.dispose()
      return settle({ returned: undefined })
    }
    const values = [loaded, context.newString(input), context.newString(JSON.stringify(environmentVariables))]
    const result = context.callFunction(call, context.undefined, ...values)
    for (const value of values) value.dispose()
    if (result.error) return result.error.consume((error) => settle(failureOf(error)))
    result.value.dispose()
    runJobs()
  }

  /** What the engine itself throws when it has no memory left to answer with. */
  const guarded = (work: () => void) => {
    try {
      work()
    } catch {
      settle(isOver() ? beyondCpu : { failed: 'memory', message: beyondMemory })
    }
  }

  let spent = 0
  return {
    async run(message, fetch) {
      const redact = redactor(message.environmentVariables)
      let requests = 0
      askFetch = (number, request) => {
        requests++
        underWay++
        const asked =
          requests > limits.fetches
            ? Promise.reject(new Error(`No more than ${limits.fetches} requests can be made.`))
            : fetch(request)
        // Waiting for it costs no processor time.
        void asked.then(
          (answer) => answered(number, answer),
          (error: Error) => answered(number, { failed: error.message }),
        )
      }
      const answered = (number: number, answer: object) => {
        underWay--
        if (outcome) return
        deadline = cpuNow() + limits.cpuMs - spent
        guarded(() => {
          const values = [context.newNumber(number), context.newString(JSON.stringify(answer))]
          const result = context.callFunction(fetched, context.undefined, ...values)
          for (const value of values) value.dispose()
          if (result.error) result.error.consume((error) => settle(failureOf(error)))
          else result.value.dispose()
          runJobs()
        })
        spent = limits.cpuMs - (deadline - cpuNow())
      }

      deadline = cpuNow() + limits.cpuMs
      guarded(() => begin(message))
      spent = limits.cpuMs - (deadline - cpuNow())
      if (!outcome) {
        await new Promise<void>((resolve) => {
          settled = resolve
        })
      }
      for (const [at, line] of logged.entries()) logged[at] = redact(line)
      const ended = outcome!
      if ('denied' in ended) return { denied: redact(ended.denied) }
      if (!('failed' in ended)) return ended
      // Caught and told by the script itself.
      const failed = ended.failed === 'error' && /\bout of memory\b/.test(ended.message) ? 'memory' : ended.failed
      return { failed: isOver() ? 'cpu' : failed, message: redact(isOver() ? beyondCpu.message : ended.message) }
    },
    logs: () => logged,
    dispose() {
      for (const handle of [call, fetched, describe]) handle.dispose()
      context.dispose()
      runtime.dispose()
    },
  }
}

const beyondMemory = 'It took more memory than a script may have.'

const lengthOf = (context: QuickJSContext, handle: QuickJSHandle): number =>
  context.getProp(handle, 'length').consume((length) => context.getNumber(length))
