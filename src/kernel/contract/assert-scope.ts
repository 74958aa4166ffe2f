import type { Caller, Scope } from './caller.ts'
import { Fault } from './fault.ts'

export function assertScope(caller: Pick<Caller, 'scopes' | 'person'>, scope: Scope): void {
  if (caller.scopes.has(scope)) return
  throw new Fault(
    'insufficient_scope',
    `The token lacks the scope ${scope}, which this operation needs: ${caller.person ? 'connect the app again, so that the person can allow it' : 'use a token that has it'}`,
    { extras: { scope } },
  )
}
