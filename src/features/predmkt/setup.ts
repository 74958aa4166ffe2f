import { Fault } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import type { RetryRule } from '#kernel/task/task.ts'
import type { PredmktInput } from './contract.ts'
import { assertAcknowledged } from './disclaimer.ts'
import { assertRelays } from './relay-allowance.ts'
import { relayerOf } from './relay-outcome.ts'
import { chainReader, type SetupDeps, setupSteps } from './setup-steps.ts'
import { partialOnceMoved, type SetupStepName, type SetupTaskData } from './setup-task.ts'
import { accountOf, addAccount, walletOfRow } from './store/account-store.ts'

/** A step of the set-up can wait for a quota of the venue that is renewed once a day. */
const setupMs = 48 * 3_600_000
const retry: RetryRule = { attemptsMax: 200, firstMs: 500, maxMs: 30_000 }

export const createSetup = (deps: SetupDeps, operation: 'predmkt_setup' | 'predmkt_setup_v2') =>
  taskOf<PredmktInput<'setup'>, SetupTaskData, SetupStepName>({
    admit: createAdmission({
      policy: deps.policy,
      asksPolicy: 'first',
      async check(_input: PredmktInput<'setup'>, { userId }) {
        await assertAcknowledged(deps, userId)
        relayerOf(deps)
        await assertRelays(deps, userId, { isExit: false })
        // Who has an account needs its key to sell and to cancel.
        const known = await accountOf(deps.db, { userId, venue: deps.venue.name })
        if (!known && (await deps.venue.access()).isBlocked)
          throw new Fault('venue_restricted', 'The venue takes no new accounts from this region')
        const action = {
          userId,
          operation,
          chainId: deps.chain.row.id,
          tokens: [],
          recipients: [],
          usdMicros: 0n,
          exit: false,
        }
        return { action }
      },
      fund: async ({ action }) => ensureAccount(deps, action.userId),
      start: (_request, wallet) => ({
        first: 'check' as const,
        deadlineMs: setupMs,
        data: startData(wallet),
      }),
    }),
    steps: setupSteps(deps),
    retry,
    completeEnd: (task, end) => partialOnceMoved(task, end),
  })

const startData = (wallet: VenueWallet): SetupTaskData => ({ wallet })

/** Returns the user's wallet at the venue; a new user gets the first kind, unless another one has code already. */
export async function ensureAccount(deps: SetupDeps, userId: string): Promise<VenueWallet> {
  const { db, venue, clock } = deps
  const key = { userId, venue: venue.name }
  const known = await accountOf(db, key)
  if (known) return walletOfRow(known)
  const owner = await deps.evmAddressOf(userId)
  const wallets = venue.walletsOf(owner).filter(({ kind }) => kind === 'deposit_wallet')
  const codes = await Promise.all(wallets.map(({ wallet }) => chainReader(deps).code(wallet)))
  const deployed = wallets.find((_, index) => codes[index] !== '0x')
  const wallet = deployed ?? wallets[0]
  if (!wallet) throw new Fault('unavailable', 'The venue has no wallet for a new user')
  await addAccount(db, { ...key, wallet, now: clock.now() })
  return walletOfRow((await accountOf(db, key))!)
}
