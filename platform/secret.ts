import { hash } from 'node:crypto'
import { inspect } from 'node:util'

const redacted = '[redacted]'

/** A credential that cannot be logged, serialised or interpolated by accident; `reveal()` is the only way in. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return redacted
  }

  toJSON(): string {
    return redacted
  }

  [inspect.custom](): string {
    return redacted
  }
}

export const sha256 = (value: string | Uint8Array): Buffer => hash('sha256', value, 'buffer')
