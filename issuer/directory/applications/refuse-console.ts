import { consoleClientId } from '../../base/console-roles.ts'
import { problem } from '../../base/errors/problems.ts'

/** Whoever set its redirect URIs, or gave it a secret, could get the tokens of everybody who uses it. */
export const refuseConsole = (id: string): void => {
  if (id === consoleClientId) throw problem('application.console_not_changeable')
}
