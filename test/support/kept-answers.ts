import { getHeapSpaceStatistics } from 'node:v8'
import { createDatabase, statement } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'

/**
 * Prints how many bytes of each byte that the database has answered outlive two small collections, though nobody holds
 * them. A process of its own: where V8 puts objects depends on how long those before them have lived.
 */

const database = createDatabase({ connection: JSON.parse(process.argv[2]!), logger: silentLogger })
const wide = statement(
  'test-wide',
  `SELECT ${Array.from({ length: 40 }, (_, n) => `repeat('x', 200) || $1 AS c${n}`).join(', ')}`,
)
const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')!.space_used_size

const read = async (answers: number): Promise<number> => {
  const before = old()
  let [begun, bytes] = [0, 0]
  const some = async () => {
    while (begun++ < answers) {
      const [row] = await database.query<Record<string, string>>(wide, [String(begun)])
      for (const value of Object.values(row!)) bytes += value.length
    }
  }
  await Promise.all(Array.from({ length: 8 }, some))
  return (old() - before) / bytes
}

// What is under way while it is compiled stays.
const kept = [await read(6_000), await read(6_000), await read(6_000)]
await database.close()
console.log(JSON.stringify(kept))
