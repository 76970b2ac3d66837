import { availableParallelism } from 'node:os'
import type { GatewayFile } from './settings/file.ts'

/** How many processes a configuration asks for. */
export const workersOf = ({ workers }: Pick<GatewayFile, 'workers'>): number =>
  workers === 'auto' ? availableParallelism() : workers
