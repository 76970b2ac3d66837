import type { QuickJSContext, QuickJSHandle, QuickJSWASMModule } from 'quickjs-emscripten-core'
import { describeError, showValue } from './engine-code.ts'
import {
  beyondCpu,
  type CallMessage,
  type CallResult,
  maxResultBytes,
  type SandboxLimits,
  type ScriptOutcome,
} from './messages.ts'
import { type Redact, redactor } from './redact.ts'
import { lengthOf, type OfferFetch, offerFetch, type ScriptFetch } from './script-fetch.ts'

/**
 * One call of a script in a JavaScript engine of its own, made for this call and thrown away after it: nothing that a
 * script leaves behind is there in the next. It holds the language, `console` and, where the operator allows it,
 * `fetch`; no object of the host.
 */
export interface SandboxCall {
  /** Never rejects. Once only. */
  run(call: CallMessage): Promise<CallResult>
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
/** Values of a line. */
const maxLogged = 20
/** Of a text that is shown to somebody, in characters. */
const maxText = 65_536
/** Jobs that are run before the clock is looked at: each may be too short for the engine to ask. */
const jobsAtOnce = 64
const beyondMemory: ScriptOutcome = { failed: 'memory', message: 'It took more memory than a script may have.' }
const tooLong: ScriptOutcome = { failed: 'result', message: `It returned more than ${maxResultBytes} bytes of JSON.` }

/**
 * Made before the call, since making an engine takes longest. Functions used after the script has begun were saved
 * before (`parse`, `stringify`); a script can change the rest only for itself.
 */
export const prepareCall = (
  engine: QuickJSWASMModule,
  limits: SandboxLimits,
  fetch: ScriptFetch | undefined,
): SandboxCall => {
  const tooSlow = beyondCpu(limits.cpuMs)
  let deadline = Number.POSITIVE_INFINITY
  const isOver = () => cpuNow() > deadline
  const runtime = engine.newRuntime({
    memoryLimitBytes: limits.heapBytes,
    maxStackSizeBytes: limits.stackBytes,
    interruptHandler: isOver,
  })
  const context = runtime.newContext()
  const handles: QuickJSHandle[] = []
  const own = (handle: QuickJSHandle): QuickJSHandle => {
    handles.push(handle)
    return handle
  }

  let redact: Redact = redactor()
  const logged: string[] = []
  let lines = 0
  let denied: string | undefined
  let outcome: ScriptOutcome | undefined
  let settled: (() => void) | undefined
  let returned: QuickJSHandle | undefined

  const settle = (found: ScriptOutcome) => {
    // A refusal stands, whatever the script does then; otherwise what came first.
    outcome ??= denied === undefined ? found : { denied }
    settled?.()
  }

  /** What a function of ours makes of a value, in the engine. Undefined when it cannot be had. */
  const evaluated = (code: string, value: QuickJSHandle): string | undefined => {
    const compiled = context.evalCode(code, 'sandbox.js')
    if (compiled.error) return void compiled.error.dispose()
    const shown = compiled.value.consume((show) => context.callFunction(show, context.undefined, value))
    if (shown.error) return void shown.error.dispose()
    return shown.value.consume((text) => textOf(context, text))
  }

  const failureOf = (error: QuickJSHandle): ScriptOutcome => {
    const message = isOver() ? undefined : evaluated(describeError, error)
    if (isOver()) return tooSlow
    if (message === undefined || message.startsWith('InternalError: out of memory')) return beyondMemory
    return { failed: 'error', message }
  }

  const json = own(context.getProp(context.global, 'JSON'))
  const parse = own(context.getProp(json, 'parse'))
  const stringify = own(context.getProp(json, 'stringify'))

  const log = own(
    context.newFunction('log', (...values) => {
      if (lines++ >= maxLogs) return
      const shown = values
        .slice(0, maxLogged)
        .map((value) => textOf(context, value) ?? evaluated(showValue, value) ?? '?')
      // Shortened at once: a script is not to fill the memory of its thread.
      logged.push(redact(shown.join(' ')))
    }),
  )
  const console = own(context.newObject())
  for (const name of ['log', 'info', 'debug', 'warn', 'error']) context.setProp(console, name, log)
  context.setProp(context.global, 'console', console)

  const api = own(context.newObject())
  context
    .newFunction('denyAccess', (message) => {
      denied ??= (message && textOf(context, message)) ?? ''
      throw new Error('Access was denied.')
    })
    .consume((deny) => context.setProp(api, 'denyAccess', deny))

  /** Of the time that it has not used up: waiting for an answer costs none. */
  let left = limits.cpuMs
  const timed = (work: () => void) => {
    deadline = cpuNow() + left
    try {
      work()
    } catch {
      // What the engine throws when it has no memory left to answer with.
      settle(isOver() ? tooSlow : beyondMemory)
    }
    left = deadline - cpuNow()
    // Many short steps may each end before the engine asks.
    if (left < 0) settle(tooSlow)
  }

  const answered: OfferFetch['answered'] = (deliver) => {
    if (outcome) return
    timed(() => {
      const result = deliver()
      if (result.error) return result.error.consume((error) => settle(failureOf(error)))
      result.value.dispose()
      goOn()
    })
  }
  const offered = fetch && offerFetch({ context, own, most: limits.fetches, ask: fetch, answered })
  if (offered) for (const object of [api, context.global]) context.setProp(object, 'fetch', offered.fetch)

  /** The script's function. */
  const load = (script: string): QuickJSHandle | undefined => {
    const loaded = context.evalCode(script, 'getCustomJwtClaims.js', { type: 'global' })
    if (loaded.error) return void loaded.error.consume((error) => settle(failureOf(error)))
    loaded.value.dispose()
    const found = context.evalCode('getCustomJwtClaims', 'sandbox.js', { type: 'global' })
    if (found.error) found.error.dispose()
    else if (context.typeof(own(found.value)) === 'function') return found.value
    return void settle(
      isOver() ? tooSlow : { failed: 'error', message: 'It does not define the function getCustomJwtClaims.' },
    )
  }

  const begin = ({ script, input, environmentVariables }: CallMessage) => {
    const main = load(script)
    if (!main) return
    if (input === undefined) return settle({ returned: undefined })
    const read = (text: string) => {
      const handle = context.newString(text)
      const result = context.callFunction(parse, context.undefined, handle)
      handle.dispose()
      return own(context.unwrapResult(result))
    }
    const argument = read(input)
    context.setProp(argument, 'environmentVariables', read(JSON.stringify(environmentVariables)))
    context.setProp(argument, 'api', api)
    const result = context.callFunction(main, context.undefined, argument)
    if (result.error) return result.error.consume((error) => settle(failureOf(error)))
    returned = own(result.value)
    goOn()
  }

  /** Promise jobs, until the script has returned, waits, or its time is up. */
  const goOn = () => {
    while (runtime.hasPendingJob()) {
      const ran = runtime.executePendingJobs(jobsAtOnce)
      if (ran.error) return ran.error.consume((error) => settle(failureOf(error)))
      ran.dispose()
      if (denied !== undefined || isOver()) return settle(tooSlow)
    }
    const state = context.getPromiseState(returned!)
    if (state.type === 'rejected') return state.error.consume((error) => settle(failureOf(error)))
    if (state.type === 'fulfilled') {
      // A value that is no promise is the handle itself.
      if (!state.notAPromise) own(state.value)
      return settle(resultOf(state.value))
    }
    if (!offered?.isWaiting() || denied !== undefined) {
      settle({ failed: 'unsettled', message: 'It waits for a promise that nothing settles.' })
    }
  }

  const resultOf = (value: QuickJSHandle): ScriptOutcome => {
    const text = context.callFunction(stringify, context.undefined, value)
    if (text.error) {
      return text.error.consume((error) => {
        const failure = failureOf(error)
        return 'failed' in failure && failure.failed === 'error' ? { ...failure, failed: 'result' } : failure
      })
    }
    return text.value.consume((json) => {
      if (context.typeof(json) !== 'string') return { returned: undefined }
      return lengthOf(context, json) > maxResultBytes ? tooLong : { returned: context.getString(json) }
    })
  }

  return {
    async run(message) {
      redact = redactor(message.environmentVariables)
      timed(() => begin(message))
      if (!outcome) {
        await new Promise<void>((resolve) => {
          settled = resolve
        })
      }
      return { outcome: redacted(outcome!, redact), logs: logged, cpuMs: limits.cpuMs - left }
    },
    dispose() {
      for (const handle of handles) handle.dispose()
      context.dispose()
      runtime.dispose()
    },
  }
}

/** Undefined when it is none. One that is too long is not cut: half a secret could not be recognised. */
const textOf = (context: QuickJSContext, handle: QuickJSHandle): string | undefined => {
  if (context.typeof(handle) !== 'string') return undefined
  const length = lengthOf(context, handle)
  return length > maxText ? `(a text of ${length} characters)` : context.getString(handle)
}

const redacted = (outcome: ScriptOutcome, redact: Redact): ScriptOutcome => {
  if ('denied' in outcome) return { denied: redact(outcome.denied) }
  return 'failed' in outcome ? { ...outcome, message: redact(outcome.message) } : outcome
}
