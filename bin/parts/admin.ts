import { startAdminServer } from '../../platform/http/admin-server.ts'
import type { Service } from '../cli/serve.ts'

/** Health and metrics of the whole process. Opened first, so that it is closed last. */
export const openAdmin = async ({ lifecycle, health, metrics }: Service, address: { host: string; port: number }) => {
  const admin = await startAdminServer({ ...address, health, metrics })
  lifecycle.onStop('admin listener', () => admin.close(1_000))
  return admin
}
