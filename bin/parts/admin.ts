import { startAdminServer } from '../../platform/http/admin-server.ts'
import type { Service } from '../cli/serve.ts'

/** Health, metrics and inspection of the whole process. Opened first, so that it is closed last. */
export const openAdmin = async (
  { lifecycle, health, metrics, inspection }: Service,
  address: { host: string; port: number },
) => {
  const admin = await startAdminServer({ ...address, health, metrics, inspection })
  lifecycle.onStop('admin listener', () => admin.close(1_000))
  return admin
}
