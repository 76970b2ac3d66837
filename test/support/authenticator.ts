export * from '../../testing/authenticator.ts'
