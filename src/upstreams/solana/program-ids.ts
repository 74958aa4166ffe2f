export const systemProgram = '11111111111111111111111111111111'
export const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
export const token2022Program = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'
export const associatedTokenProgram = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL'
export const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
export const computeBudgetProgram = 'ComputeBudget111111111111111111111111111111'
export const lookupTableProgram = 'AddressLookupTab1e1111111111111111111111111'
/** Relay's program, which takes deposits. */
export const depositoryProgram = '99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2'
export const tokenPrograms = [tokenProgram, token2022Program] as const

/** The first bytes of the depository's instructions, in hexadecimal text. */
export const depositNativeTag = '0d9e0ddf5fd51c06'
export const depositTokenTag = '0b9c60da27a3b413'

/** The numbers with which the data of these kinds of instructions begin. */
export const systemTransferTag = 2
export const tokenTransferCheckedTag = 12
export const tokenCloseAccountTag = 9
export const createIdempotentTag = 1
export const computeLimitTag = 2
export const computePriceTag = 3
