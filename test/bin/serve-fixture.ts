import { serve } from '../../bin/cli/serve.ts'

/** A service for serve.test.ts, run as a process of its own. Its argument says what goes wrong. */
const [mode] = process.argv.slice(2)
const print = (line: string) => process.stdout.write(`${line}\n`)
const forever = new Promise<never>(() => {})

const code = await serve({ name: 'fixture', level: 'silent' }, async ({ lifecycle, health, fail }) => {
  // Something that keeps a process alive.
  const timer = setInterval(() => {}, 1_000)
  lifecycle.onStop('first', () => {
    clearInterval(timer)
    print('released first')
  })
  print('starting')
  if (mode === 'tells-readiness') {
    print(`ready: ${(await health.ready()).ok}`)
    setTimeout(async () => print(`ready: ${(await health.ready()).ok}`))
  }
  if (mode === 'signalled-while-starting') await new Promise((resolve) => process.once('SIGTERM', resolve))
  lifecycle.onStop('second', () => {
    print('released second')
    return mode === 'hangs' ? forever : undefined
  })
  if (mode === 'fails') throw new Error('cannot start')
  print('started')
  if (mode === 'lost') fail(new Error('the database has ended'))
  if (mode === 'rejects') void Promise.reject(new Error('nobody handles this'))
}).catch((error: Error) => {
  print(`failed: ${error.message}`)
  return 3
})
process.exit(code)
