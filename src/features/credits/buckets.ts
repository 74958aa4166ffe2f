import { creditsAsset, planAccountPrefix } from '#kernel/money/credit-accounts.ts'
import { externalAccount, type Move } from '#kernel/task/task.ts'

/** The origins of credits, in the order of spending: credits that expire first are spent first. */
export const bucketKinds = ['signup', 'referral', 'plan', 'purchased'] as const
export type BucketKind = (typeof bucketKinds)[number]

export const subAccountOf = (kind: Exclude<BucketKind, 'plan'>): string => `${creditsAsset}:${kind}`

/** Returns the move that books purchased credits, which never expire. */
export const purchasedCredits = (
  userId: string,
  { key, credits, reason }: { key: string; credits: bigint; reason: string },
): Move => ({
  move: 'transfer',
  key,
  debit: externalAccount(creditsAsset),
  credit: { owner: userId, asset: creditsAsset, subAccount: subAccountOf('purchased') },
  amountUnits: credits,
  reason,
})

export type Bucket = { kind: BucketKind; credits: bigint; expiresAt: Date | null }
type Balance = { subAccount: string; availUnits: bigint }
type Expiry = { sub_account: string; expires_at: Date }

/** Returns the accounts whose credits have not expired, in the order of spending. */
export const spendableAccounts = (expiries: readonly Expiry[], now: Date): string[] =>
  bucketKinds.flatMap((kind) => {
    if (kind === 'plan') return livePlanAccounts(expiries, now)
    const subAccount = subAccountOf(kind)
    const hasExpired = expiries.some((each) => each.sub_account === subAccount && each.expires_at <= now)
    return hasExpired ? [] : [subAccount]
  })

const livePlanAccounts = (expiries: readonly Expiry[], now: Date): string[] =>
  expiries
    .filter((each) => each.sub_account.startsWith(planAccountPrefix) && each.expires_at > now)
    .sort((a, b) => a.expires_at.getTime() - b.expires_at.getTime())
    .map((each) => each.sub_account)

const kindOf = (subAccount: string): BucketKind =>
  bucketKinds.find((kind) => kind !== 'plan' && subAccountOf(kind) === subAccount) ?? 'plan'

/** Returns the credits that are available at `now`, without expired ones and those on hold. */
export function liveBuckets(balances: readonly Balance[], expiries: readonly Expiry[], now: Date): Bucket[] {
  return spendableAccounts(expiries, now).flatMap((subAccount) => {
    const credits = balances.find((each) => each.subAccount === subAccount)?.availUnits ?? 0n
    const expiresAt = expiries.find((each) => each.sub_account === subAccount)?.expires_at ?? null
    return credits > 0n ? [{ kind: kindOf(subAccount), credits, expiresAt }] : []
  })
}

export const totalOf = (buckets: readonly Bucket[]): bigint =>
  buckets.reduce((sum, { credits }) => sum + credits, 0n)
