import { loadConfig } from '../../platform/config.ts'
import { createBrowser } from '../../testing/browser.ts'
import { SignInFailed } from '../../testing/step.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { accessTokenOf } from '../login/on-device.ts'
import { storedLogins } from '../login/stored-logins.ts'

/**
 * `surrogate token`: prints an access token of the person who signed in by `surrogate login`, for whatever takes one:
 * `curl -H "Authorization: Bearer $(surrogate token)"`. 1 when the sign-in is over.
 */
export const tokenCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, { issuer: { type: 'string' }, resource: { type: 'string' } })
  const logins = storedLogins(loadConfig(settings.token, process.env))
  const before = await logins.find(values.issuer)
  try {
    const browser = createBrowser({ onHop: () => {} })
    const { token, login } = await accessTokenOf(before, values.resource ?? before.resources[0], { browser })
    if (login !== before) await logins.save(login)
    process.stdout.write(`${token}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof SignInFailed)) throw error
    process.stderr.write(`${error.message}\nUse surrogate login to sign in again.\n`)
    return 1
  }
}
