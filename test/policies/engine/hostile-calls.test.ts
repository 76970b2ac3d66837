import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { builtinNames, loadBuiltins } from '../../../policies/engine/builtins/index.ts'
import { hostileCalls } from './hostile/calls.ts'
import { type Measured, measure } from './hostile/measure.ts'

/**
 * No call of a built-in function may keep the thread that decides for long, whatever it is given. Here are the calls
 * that try, and `hostile/expected.yaml` says what becomes of each: in units, since a clock would say another thing on
 * every machine. `npm run bench -- host-functions` says it in milliseconds.
 */
const measuredSchema = z.object({ outcome: z.enum(['answered', 'refused', 'used up']), units: z.number() })
const expectedSchema = z.record(z.string(), z.record(z.string(), measuredSchema))
const file = new URL('./hostile/expected.yaml', import.meta.url)
const expected = expectedSchema.parse(parse(await readFile(file, 'utf8')))

const builtins = await loadBuiltins(['graphql.parse'])

test.each([...builtinNames].sort())('%s', (name) => {
  const calls = hostileCalls.filter(({ builtin }) => builtin === name)
  const wanted = expected[name] ?? {}
  const measured = calls.map((call) => [call.name, nearly(wanted[call.name], measure(builtins, call))])
  expect(calls).not.toEqual([])
  expect(Object.fromEntries(measured)).toEqual(wanted)
})

/** Keys and signatures are others in each run, and some a little longer. */
const tolerance = 0.25

const nearly = (wanted: Measured | undefined, measured: Measured): Measured =>
  wanted && Math.abs(measured.units - wanted.units) <= tolerance * wanted.units
    ? { ...measured, units: wanted.units }
    : measured
