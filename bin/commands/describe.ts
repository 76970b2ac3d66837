import { asyncApiDocument, eventsJsonSchema } from '../../events/documents.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { parseOptions } from '../cli/options.ts'

/**
 * `surrogate describe events | asyncapi`: the documents that a running issuer serves, for who generates code without
 * one.
 */
export const describeCommand = async ([name = '', ...args]: readonly string[]): Promise<number> => {
  const make = Object.hasOwn(documents, name) ? documents[name] : undefined
  if (!make) {
    const message = name === '' ? 'What to describe is missing.' : `surrogate describe has no "${name}".`
    throw new StartupError(message, { hint: `Use one of ${Object.keys(documents).join(', ')}.` })
  }
  parseOptions(args, {})
  // All of it, before the command ends the process.
  await new Promise((resolve) => process.stdout.write(`${JSON.stringify(make(), null, 2)}\n`, resolve))
  return 0
}

const documents: Readonly<Record<string, () => object>> = { events: eventsJsonSchema, asyncapi: asyncApiDocument }
