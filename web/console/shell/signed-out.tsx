import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { isProblem } from '../api/problem.ts'
import { signInAgain } from '../api/sign-in.ts'
import { Button } from '../components/button.tsx'
import { Dialog, DialogActions } from '../components/dialog.tsx'

/** When the session has ended while somebody works: the way back to where they are, with all that they typed. */
export const SignedOut = () => {
  const client = useQueryClient()
  const [isOut, setIsOut] = useState(false)
  useEffect(() => {
    const look = (error: unknown) => {
      if (isProblem(error, 'console.signed_out')) setIsOut(true)
    }
    const leaveQueries = client.getQueryCache().subscribe(({ query }) => look(query.state.error))
    const leaveChanges = client.getMutationCache().subscribe(({ mutation }) => look(mutation?.state.error))
    return () => {
      leaveQueries()
      leaveChanges()
    }
  }, [client])
  return (
    <Dialog title="Your session has ended" isOpen={isOut} onClose={() => setIsOut(false)} isStrict>
      <p>Sign in again to go on. What you have typed on this page is kept in this tab.</p>
      <DialogActions>
        <Button onPress={() => setIsOut(false)}>Not now</Button>
        <Button kind="main" autoFocus onPress={() => signInAgain()}>
          Sign in again
        </Button>
      </DialogActions>
    </Dialog>
  )
}
