import type { EventContent } from '../../events/catalogue.ts'
import type { NewEvent } from '../../events/outbox.ts'

type UserEvent = Extract<EventContent, { entity: { kind: 'user' } }>['type']

/** An event of a user as the Management API reports it, whatever a real one holds. */
export const userEvent = (type: UserEvent, userId: string, data: Record<string, unknown> = {}): NewEvent => {
  const event = {
    type,
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
  }
  return event as NewEvent
}

export const userUpdated = (userId: string, data: Record<string, unknown> = {}): NewEvent =>
  userEvent('User.Data.Updated', userId, data)
