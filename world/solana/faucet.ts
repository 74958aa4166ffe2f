import { randomUUID } from 'node:crypto'
import type { Chain } from './chain.ts'
import { associatedTokenAddress } from './keys.ts'
import { associatedTokenProgram, memoProgram, systemProgram } from './programs.ts'
import { type WorldToken, worldKey } from './token-definition.ts'
import { treasuryOf, worldTokens } from './tokens.ts'
import { type PlannedInstruction, signedTransaction } from './transaction-builder.ts'

const payer = { address: worldKey.address, signer: true, writable: true }

const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

/** Two equal grants within one blockhash would be one transaction; the memo makes them different. */
const memo = (text: string): PlannedInstruction => ({
  program: memoProgram,
  accounts: [],
  data: Buffer.from(text),
})

const sendGrant = (chain: Chain, instructions: PlannedInstruction[], id: string): string => {
  const blockhash = chain.time.hashOf(chain.time.current())
  return chain.send(signedTransaction(worldKey, [...instructions, memo(`faucet ${id}`)], blockhash), {
    skipPreflight: false,
  })
}

const lamportTransfer = (address: string, lamports: bigint): PlannedInstruction => ({
  program: systemProgram,
  accounts: [payer, { address, writable: true }],
  data: Buffer.concat([Uint8Array.of(2, 0, 0, 0), u64(lamports)]),
})

const tokenGrant = (token: WorldToken, owner: string, amountUnits: bigint): PlannedInstruction[] => {
  const { mint, program, decimals, fixedSupplyUnits } = token
  const account = associatedTokenAddress(owner, mint, program)
  const create = {
    program: associatedTokenProgram,
    accounts: [
      payer,
      { address: account, writable: true },
      { address: owner },
      { address: mint },
      { address: systemProgram },
      { address: program },
    ],
    data: Uint8Array.of(1),
  }
  const into = { address: account, writable: true }
  const authority = { address: worldKey.address, signer: true }
  const move =
    fixedSupplyUnits === undefined
      ? { tag: 14, accounts: [{ address: mint, writable: true }, into, authority] }
      : {
          tag: 12,
          accounts: [{ address: treasuryOf(token), writable: true }, { address: mint }, into, authority],
        }
  const data = Buffer.concat([Uint8Array.of(move.tag), u64(amountUnits), Uint8Array.of(decimals)])
  return [create, { program, accounts: move.accounts, data }]
}

export const findToken = (mintOrSymbol: string): WorldToken | undefined =>
  worldTokens.find(({ mint, symbol }) => mint === mintOrSymbol || symbol === mintOrSymbol.toUpperCase())

export const airdrop = (chain: Chain, address: string, lamports: bigint): string =>
  sendGrant(chain, [lamportTransfer(address, lamports)], randomUUID())

export type FaucetGrant = { address: string; token: WorldToken | 'native'; amountUnits: bigint; id?: string }

/** One grant per id: a repeated call returns the first signature. */
export const grantOnce = (chain: Chain, { address, token, amountUnits, id }: FaucetGrant): string => {
  const known = id === undefined ? undefined : chain.ledger.minted(id)
  if (known !== undefined) return known
  const grant =
    token === 'native' ? [lamportTransfer(address, amountUnits)] : tokenGrant(token, address, amountUnits)
  return chain.together(() => {
    const signature = sendGrant(chain, grant, id ?? randomUUID())
    if (id !== undefined) chain.recordMint(id, signature)
    return signature
  })
}
