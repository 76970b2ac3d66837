/**
 * Whether an error of `pg` or knex says that the database cannot serve at this moment: its name has no address (a
 * container that is being replaced), it is not there, refuses, ends or drops connections (SQLSTATE class 08, 57P01 to
 * 57P03), it has no connection, disk or memory left (class 53), or the pool has no connection left. What was asked may
 * have been carried out.
 */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  if ('syscall' in error && (error.syscall === 'connect' || error.syscall === 'getaddrinfo')) return true
  if (error.name === 'KnexTimeoutError' || withoutCode.test(error.message)) return true
  return 'code' in error && /^(08...|53...|57P0[123]|ECONNRESET|EPIPE)$/.test(String(error.code))
}

// What pg and knex say without a code; knex puts the statement in front.
const withoutCode =
  /(^| - )(Connection terminated|timeout exceeded|Client (has encountered a connection error|was closed))/
