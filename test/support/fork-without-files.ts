import { closeSync, openSync } from 'node:fs'
import { forkWorker } from '../../gateway/workers/fork-worker.ts'

/** Forks a worker while this process may open no more files, and tells how that one ended. */

const files: number[] = []
const fillUp = () => {
  try {
    for (;;) files.push(openSync('/dev/null', 'r'))
  } catch {}
}

// What it loads at the first time is loaded.
const first = forkWorker({ number: 1, handlersOf: () => ({}) as never, stdout: { write: () => true } })
await first.call('ping', undefined)
first.kill()
await first.closed

fillUp()
const worker = forkWorker({ number: 2, handlersOf: () => ({}) as never, stdout: { write: () => true } })
const asked = worker.call('ping', undefined).catch(() => {})
worker.kill()
await asked
const how = await worker.ended
for (const file of files) closeSync(file)
console.log(`ended: ${how}`)
