import { isPublic } from '../../clients/client.ts'
import type { TokenRequest } from '../grant.ts'

/**
 * The key that refresh tokens of a request are bound to (RFC 9449 §5): for a public client the one it proved. Others
 * prove who they are at each use, and may change their key.
 */
export const refreshKey = ({ client, jkt }: Pick<TokenRequest, 'client' | 'jkt'>): string | undefined =>
  isPublic(client) ? jkt : undefined
