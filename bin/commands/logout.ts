import { loadConfig } from '../../platform/config.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { createBrowser } from '../../testing/browser.ts'
import { SignInFailed } from '../../testing/step.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { giveUp } from '../login/on-device.ts'
import { storedLogins } from '../login/stored-logins.ts'

/**
 * `surrogate logout`: gives up what `surrogate login` got, and forgets it. 1 when the issuer could not be told: it is
 * forgotten all the same.
 */
export const logoutCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, { issuer: { type: 'string' } })
  const logins = storedLogins(loadConfig(settings.logout, process.env))
  const login = await logins.find(values.issuer)
  const told = await giveUp(login, createBrowser({ onHop: () => {} })).catch((error: unknown) => {
    if (error instanceof SignInFailed || error instanceof StartupError) return error
    throw error
  })
  await logins.remove(login.issuer)
  if (!told) {
    process.stdout.write(`Signed out of ${login.issuer}.\n`)
    return 0
  }
  process.stderr.write(`${login.issuer} is forgotten here, but it was not told: ${told.message}\n`)
  return 1
}
