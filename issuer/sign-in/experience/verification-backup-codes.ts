import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { backupCodesAnswer, verification } from './answers.ts'
import { attemptProblems, provenBy } from './attempt-problems.ts'
import { guardProblems, requireEnrolment, requireFactor, requirePerson } from './guards.ts'
import { experienceRoute } from './route.ts'

/** Backup codes: made here, shown once, and used one by one. */
export const backupCodeRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/backup-code/generate',
    operationId: 'generateBackupCodes',
    summary: 'Makes backup codes, which are shown once.',
    status: 200,
    response: backupCodesAnswer,
    problems: [...guardProblems.factor, ...guardProblems.enrolment, 'user.backup_code_already_in_use'],
    async handle(call) {
      requireFactor(call, 'BackupCode')
      await requireEnrolment(call)
      if ((call.interaction.person?.backupCodes ?? 0) > 0) throw problem('user.backup_code_already_in_use')
      const made = await call.operations.enrolment.backupCodes(call.interaction)
      if (!made) throw problem('session.not_found')
      return { body: { verificationId: made.proofId, codes: made.codes } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/backup-code/verify',
    operationId: 'verifyBackupCode',
    summary: 'Proves a second factor by a backup code.',
    body: z.object({ code: z.string().min(1).max(64) }),
    status: 200,
    response: verification,
    problems: [...guardProblems.factor, ...guardProblems.person, ...attemptProblems, 'session.mfa.invalid_backup_code'],
    async handle(call) {
      const { operations, interaction, visitor, body, request, count } = call
      requireFactor(call, 'BackupCode')
      requirePerson(call)
      const input = { kind: 'backup_code', code: body.code } as const
      const attempt = await operations.secondFactors.prove(interaction, visitor, input, request)
      count('backup_code', attempt.outcome)
      return { body: { verificationId: provenBy(attempt, () => problem('session.mfa.invalid_backup_code')) } }
    },
  }),
]
