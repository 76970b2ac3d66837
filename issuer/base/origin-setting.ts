import { setting } from '../../platform/config.ts'

/** A setting that is the origin of a website; a slash at its end is left out. */
export const originSetting = setting
  .url('http:', 'https:')
  .refine((url) => new URL(url).pathname === '/' && !/[?#]/.test(url), 'must have no path, query or fragment')
  .transform((url) => new URL(url).origin)
