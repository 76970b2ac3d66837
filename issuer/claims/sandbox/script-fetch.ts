import type { QuickJSContext, QuickJSHandle } from 'quickjs-emscripten-core'
import { fetchInside } from './engine-code.ts'
import type { FetchedAnswer, FetchRequest } from './messages.ts'

export type ScriptFetch = (request: FetchRequest) => Promise<FetchedAnswer>

export interface OfferFetch {
  context: QuickJSContext
  /** Keeps a handle until the engine is thrown away. */
  own(handle: QuickJSHandle): QuickJSHandle
  /** Requests, at most. */
  most: number
  ask: ScriptFetch
  /** There is an answer; `deliver` hands it to the script, unless that is over. */
  answered(deliver: () => ReturnType<QuickJSContext['callFunction']>): void
}

/** JSON of a request, in characters. What its parts may be is the business of whoever sends it. */
const maxRequest = 131_072

/** `fetch` in the engine of a script, which only says what to ask: `ask` does. */
export const offerFetch = ({ context, own, most, ask, answered }: OfferFetch) => {
  let begun = 0
  let underWay = 0

  /** Answers why it cannot be begun. */
  const begin = context.newFunction('begin', (number, request) => {
    if (++begun > most) return context.newString(`No more than ${most} requests can be made.`)
    if (context.typeof(request!) !== 'string') return context.newString('The request cannot be read.')
    if (lengthOf(context, request!) > maxRequest) return context.newString('The request is too large.')
    const key = context.getNumber(number!)
    underWay++
    void ask(JSON.parse(context.getString(request!))).then(
      (answer) => end(key, answer),
      (error: Error) => end(key, { failed: error.message }),
    )
    return undefined
  })
  const parts = context.unwrapResult(context.evalCode(fetchInside, 'sandbox.js')).consume((factory) => {
    const made = context.unwrapResult(context.callFunction(factory, context.undefined, begin))
    begin.dispose()
    return own(made)
  })
  const ended = own(context.getProp(parts, 'ended'))

  const end = (number: number, answer: object) => {
    underWay--
    answered(() => {
      const values = [context.newNumber(number), context.newString(JSON.stringify(answer))]
      const result = context.callFunction(ended, context.undefined, ...values)
      for (const value of values) value.dispose()
      return result
    })
  }

  return { fetch: own(context.getProp(parts, 'fetch')), isWaiting: () => underWay > 0 }
}

export const lengthOf = (context: QuickJSContext, text: QuickJSHandle): number =>
  context.getProp(text, 'length').consume((length) => context.getNumber(length))
