import { useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../components/button.tsx'
import { Fields } from '../../components/fields.tsx'

/** From the id of a request to why it ended so. */
export const RequestField = ({ request = '' }: { request?: string }) => {
  const [typed, setTyped] = useState(request)
  const [, navigate] = useLocation()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (typed.trim() !== '') navigate(`/why/${encodeURIComponent(typed.trim())}`)
      }}
    >
      <Fields
        fields={[
          {
            ...{ path: 'request', label: 'Request id', isCode: true, isRequired: true, autoComplete: 'off' },
            hint: 'It stands in the answer that the caller got, as instance, and in the header x-request-id.',
          },
        ]}
        values={{ request: typed }}
        onChange={(_, value) => setTyped(String(value))}
      />
      <Button type="submit" kind="main">
        Why?
      </Button>
    </form>
  )
}
