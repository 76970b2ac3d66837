import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callConsole } from '../../api/call.ts'
import { Fields } from '../../components/fields.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import { InspectedToken } from './inspected-token.tsx'
import { findJwts, hasEncrypted, type PublishedKey } from './jwt.ts'

/** What is in a token, and who signed it. The token stays in this page, and is gone with it. */
export const Tokens = () => {
  const [text, setText] = useState('')
  const { data: keys, error } = useQuery({
    queryKey: ['published keys'],
    queryFn: ({ signal }) => callConsole<{ keys: PublishedKey[] }>('GET', '/jwks', undefined, signal),
  })
  const found = findJwts(text)
  return (
    <>
      <Section
        title="Inspect a token"
        lead="It is read and checked in this page with the keys that the issuer publishes: nothing of it is sent or kept."
      >
        <ProblemNotice error={error} />
        <Fields
          fields={[
            {
              ...{ path: 'token', label: 'Token, or any text with tokens in it', kind: 'lines' },
              ...{ isCode: true, isRequired: true, autoComplete: 'off', placeholder: 'Authorization: Bearer eyJ…' },
            },
          ]}
          values={{ token: text }}
          onChange={(_, value) => setText(String(value))}
        />
        {text.trim() !== '' && found.length === 0 && (
          <Notice>
            {hasEncrypted(text)
              ? 'This is an encrypted token (JWE): only whoever it is for can read it.'
              : 'There is no JSON Web Token in this. Tokens without anything to read, such as refresh tokens, are known to the issuer alone: ask POST /oidc/token/introspection.'}
          </Notice>
        )}
      </Section>
      {found.map((jwt) => (
        <InspectedToken key={`${jwt.signed}.${jwt.signature.join()}`} jwt={jwt} keys={keys?.keys} />
      ))}
    </>
  )
}
