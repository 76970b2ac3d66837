import { parsePhoneNumberWithError } from 'libphonenumber-js/min'
import { problem } from '../../base/errors/problems.ts'

/** A telephone number as it is kept: the digits of its E.164 form. */
export interface Phone {
  number: string
  /** How the same number may have been stored before numbers were kept in one form, this form included. */
  spellings: readonly string[]
}

/**
 * Reads a number with its country code, in digits; what is dialled before a number at home, mostly a 0, may stand
 * behind the country code. A length that the country gives out will do: new ranges are in use before a list of them is
 * up to date. Throws 422 `user.invalid_phone`.
 */
export const readPhone = (digits: string): Phone => {
  const parsed = parse(digits)
  if (parsed === undefined) {
    throw problem('user.invalid_phone', {
      detail: 'primaryPhone: must be a country code and a number of that country, such as 61412345678',
    })
  }
  const { countryCallingCode: code, nationalNumber } = parsed
  const number = digitsOf(parsed.number)
  const atHome = [`0${nationalNumber}`, digitsOf(parsed.formatNational())]
  const others = atHome.map((national) => code + national).filter((text) => parse(text)?.number === parsed.number)
  return { number, spellings: [...new Set([number, ...others])] }
}

const digitsOf = (text: string) => text.replace(/\D/g, '')

/** Of an international number, country code included (E.164 §6.2.1). */
const maxDigits = 15
/** More than a country's ways of writing a number ever take. */
const maxReadings = 5

/**
 * Undefined for anything that is not a number. Parsed repeatedly until stable: `6100412345678` → `610412345678` →
 * `61412345678`.
 */
const parse = (digits: string) => {
  let text = digits
  for (let reading = 0; reading < maxReadings; reading++) {
    const parsed = parseOnce(text)
    if (!parsed?.isPossible()) return undefined
    const number = digitsOf(parsed.number)
    if (number === text) return number.length <= maxDigits ? parsed : undefined
    text = number
  }
  return undefined
}

const parseOnce = (digits: string) => {
  try {
    return parsePhoneNumberWithError(`+${digits}`, { extract: false })
  } catch {
    return undefined
  }
}
