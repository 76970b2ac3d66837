import type { z } from 'zod'
import { StartupError } from '../../platform/startup-error.ts'

/** What one side may ask of the other: the shapes of each call and of its answer. */
export type Calls = Record<string, { body: z.ZodType; answer: z.ZodType }>

type Body<One extends Calls[string]> = z.output<One['body']>
type Answer<One extends Calls[string]> = z.output<One['answer']>

/** One function for each call that the other side may make. */
export type Handlers<Ours extends Calls> = {
  [Name in keyof Ours]: (body: Body<Ours[Name]>) => Answer<Ours[Name]> | Promise<Answer<Ours[Name]>>
}

/** Calls between the primary process and one worker. */
export interface Channel<Theirs extends Calls> {
  /**
   * Rejects with what the other side threw, a `StartupError` as one; and when there is no answer within `timeoutMs`
   * (default: however long it takes), or the other side is gone.
   */
  call<Name extends keyof Theirs & string>(
    name: Name,
    body: Body<Theirs[Name]>,
    timeoutMs?: number,
  ): Promise<Answer<Theirs[Name]>>
  /** A call whose outcome nobody waits for. */
  tell<Name extends keyof Theirs & string>(name: Name, body: Body<Theirs[Name]>): void
  /** What came from the other side. */
  receive(message: unknown): void
  /** Every call that waits, and every later one, rejects. */
  end(): void
}

type Message =
  | { call: number; name: string; body: unknown }
  | { answer: number; value: unknown }
  | { refused: number; message: string; hint: string | undefined }

interface Waiting {
  name: string
  resolve(value: never): void
  reject(error: Error): void
}

export const createChannel = <Ours extends Calls, Theirs extends Calls>(options: {
  ours: Ours
  theirs: Theirs
  handlers: Handlers<Ours>
  /** May throw; then the other side is gone. */
  send: (message: object) => void
}): Channel<Theirs> => {
  const { ours, theirs, handlers, send } = options
  const waiting = new Map<number, Waiting>()
  let last = 0
  let ended = false

  const trySend = (message: Message): boolean => {
    try {
      if (!ended) send(message)
      return !ended
    } catch {
      return false
    }
  }

  const serve = async ({ call, name, body }: Extract<Message, { call: number }>) => {
    try {
      const shape = Object.hasOwn(ours, name) ? ours[name] : undefined
      if (!shape) throw new Error(`there is no call ${name}`)
      const value = await handlers[name]!(shape.body.parse(body) as never)
      trySend({ answer: call, value })
    } catch (error) {
      const hint = error instanceof StartupError ? error.hint : undefined
      trySend({ refused: call, message: (error as Error).message, hint })
    }
  }

  const settle = (id: number, how: (one: Waiting) => void) => {
    const one = waiting.get(id)
    waiting.delete(id)
    if (one) how(one)
  }

  return {
    call: (name, body, timeoutMs) =>
      new Promise((resolve, reject) => {
        const id = ++last
        const timer =
          timeoutMs === undefined
            ? undefined
            : setTimeout(() => settle(id, (one) => one.reject(new Error(`no answer to ${name}`))), timeoutMs).unref()
        waiting.set(id, {
          name,
          resolve: (value) => {
            clearTimeout(timer)
            resolve(value)
          },
          reject: (error) => {
            clearTimeout(timer)
            reject(error)
          },
        })
        if (!trySend({ call: id, name, body })) settle(id, (one) => one.reject(new Error('the other process is gone')))
      }),
    tell(name, body) {
      trySend({ call: 0, name, body })
    },
    receive(received) {
      const message = received as Message
      if ('call' in message) return void serve(message)
      if ('answer' in message) {
        return settle(message.answer, ({ name, resolve, reject }) => {
          const parsed = theirs[name]!.answer.safeParse(message.value)
          if (parsed.success) resolve(parsed.data as never)
          else reject(new Error(`the answer to ${name} has another form`))
        })
      }
      if (!('refused' in message)) return
      const { refused, message: text, hint } = message
      settle(refused, ({ reject }) => reject(hint === undefined ? new Error(text) : new StartupError(text, { hint })))
    },
    end() {
      ended = true
      for (const id of [...waiting.keys()]) settle(id, (one) => one.reject(new Error('the other process is gone')))
    },
  }
}
