import type { DecodedMessage } from '#kernel/task/signer.ts'
import { svmDecoder } from './instruction-decoder.ts'

/**
 * For a message, the sponsor pays the fee and the rent of token accounts, and gets the rent back when these
 * accounts are closed. A program takes lamports only from accounts that its instruction names, so no other
 * instruction may name the fee payer.
 */

/** At most this many token accounts may take rent in one transaction. */
const tokenAccountsMax = 4

export function feePayerViolation(message: DecodedMessage, feePayer: string): string | undefined {
  if (message.feePayer !== feePayer) return 'another account pays for the message'
  let created = 0
  for (const instruction of message.instructions) {
    const named = instruction.accounts.filter(({ address }) => address === feePayer).length
    if (named === 0) continue
    const decoded = svmDecoder.decodeInstruction(instruction)
    const isReceiver =
      (decoded?.name === 'transfer_lamports' && decoded.to === feePayer) ||
      (decoded?.name === 'close_token_account' && decoded.to === feePayer && decoded.owner !== feePayer)
    const isRent =
      decoded?.name === 'create_token_account' && decoded.payer === feePayer && decoded.owner !== feePayer
    if (named > 1 || !(isReceiver || isRent)) return 'an instruction names the fee payer'
    if (isRent) created += 1
  }
  return created > tokenAccountsMax ? `it creates more than ${tokenAccountsMax} token accounts` : undefined
}
