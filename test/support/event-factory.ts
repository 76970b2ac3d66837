import type { NewEvent } from '../../events/outbox.ts'

/** A change of a user, as the Management API reports it. */
export const userUpdated = (userId: string, data: Record<string, unknown> = {}): NewEvent => ({
  type: 'User.Data.Updated',
  entity: { kind: 'user', id: userId },
  data: { id: userId, ...data },
  request: {
    ip: '203.0.113.7',
    userAgent: 'test',
    method: 'PATCH',
    path: `/users/${userId}`,
    matchedRoute: '/users/:userId',
    params: { userId },
    status: 200,
  },
})
