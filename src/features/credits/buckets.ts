/** Credits by origin, in the order in which they are spent: what expires first goes first. */
export const bucketKinds = ['signup', 'referral', 'purchased'] as const
export type BucketKind = (typeof bucketKinds)[number]

export const creditsAsset = 'credits'
export const subAccountOf = (kind: BucketKind): string => `${creditsAsset}:${kind}`

export type Bucket = { kind: BucketKind; credits: bigint; expiresAt: Date | null }
type Balance = { subAccount: string; availUnits: bigint }
type Expiry = { sub_account: string; expires_at: Date }

/** What can be spent at `now`: expired credits do not count, and what is on hold is spent as good as. */
export function liveBuckets(balances: readonly Balance[], expiries: readonly Expiry[], now: Date): Bucket[] {
  return bucketKinds.flatMap((kind) => {
    const subAccount = subAccountOf(kind)
    const credits = balances.find((each) => each.subAccount === subAccount)?.availUnits ?? 0n
    const expiresAt = expiries.find((each) => each.sub_account === subAccount)?.expires_at ?? null
    const live = credits > 0n && (expiresAt === null || expiresAt > now)
    return live ? [{ kind, credits, expiresAt }] : []
  })
}

export const totalOf = (buckets: readonly Bucket[]): bigint =>
  buckets.reduce((sum, { credits }) => sum + credits, 0n)
