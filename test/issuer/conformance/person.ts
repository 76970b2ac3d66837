/** Who signs in: the standard claims (OpenID Connect Core §5.1) that both providers have of her. */
export const person = {
  name: 'Ada Lovelace',
  given_name: 'Ada',
  family_name: 'Lovelace',
  nickname: 'Ada',
  preferred_username: 'ada',
  website: 'https://ada.example.test/',
  gender: 'female',
  birthdate: '1815-12-10',
  zoneinfo: 'Europe/London',
  locale: 'en-GB',
  email: 'ada@example.test',
  email_verified: true,
  phone_number: '+442079460123',
  phone_number_verified: true,
  address: { formatted: '12 St James Square, London', locality: 'London', country: 'GB' },
}

/** OpenID Connect Core §5.4. */
export const claimsOfScope = {
  profile: [
    ...['name', 'given_name', 'family_name', 'nickname', 'preferred_username', 'website', 'gender', 'birthdate'],
    ...['zoneinfo', 'locale'],
  ],
  email: ['email', 'email_verified'],
  address: ['address'],
  phone: ['phone_number', 'phone_number_verified'],
} as const
