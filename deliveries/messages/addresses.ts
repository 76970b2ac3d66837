import { domainToASCII } from 'node:url'
import type { Channel } from './message.ts'

/**
 * One mail address in the form of RFC 5321 that every server takes: a dot-atom of ASCII and a domain, which is written
 * in ASCII too. Quoted local parts, comments, lists and control characters are none, so a recipient is one recipient.
 */
export const readMailAddress = (text: string): string | undefined => {
  const [, local = '', written = ''] =
    /^([\w!#$%&'*+/=?^`{|}~.-]{1,64})@([^@\s<>(),;:"[\]\\\p{Cc}\p{Cf}]{1,255})$/u.exec(text) ?? []
  const domain = domainToASCII(written)
  const label = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i
  const isDomain = domain.includes('.') && domain.split('.').every((part) => label.test(part)) && !/\.\d+$/.test(domain)
  const isLocal = local.split('.').every((part) => part !== '')
  const address = `${local}@${domain}`
  return isDomain && isLocal && address.length <= 254 ? address : undefined
}

/** `+` and digits (E.164). What is stored without the sign is taken too. */
export const readPhoneNumber = (text: string): string | undefined => {
  const [, digits] = /^\+?([1-9]\d{5,14})$/.exec(text) ?? []
  return digits && `+${digits}`
}

const readers: Record<Channel, (text: string) => string | undefined> = {
  email: readMailAddress,
  sms: readPhoneNumber,
}

/** The recipient as providers get it; undefined when it is none. */
export const readRecipient = (channel: Channel, to: string): string | undefined => readers[channel](to)
