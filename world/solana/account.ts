export type Account = { lamports: bigint; data: Uint8Array; owner: string; executable: boolean }
export type AccountLookup = (address: string) => Account | undefined
