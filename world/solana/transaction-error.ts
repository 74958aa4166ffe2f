/** The order is LiteSVM's numbering; the names are the ones that every RPC client parses. */
const fieldless = [
  'AccountInUse',
  'AccountLoadedTwice',
  'AccountNotFound',
  'ProgramAccountNotFound',
  'InsufficientFundsForFee',
  'InvalidAccountForFee',
  'AlreadyProcessed',
  'BlockhashNotFound',
  'CallChainTooDeep',
  'MissingSignatureForFee',
  'InvalidAccountIndex',
  'SignatureFailure',
  'InvalidProgramForExecution',
  'SanitizeFailure',
  'ClusterMaintenance',
  'AccountBorrowOutstanding',
  'WouldExceedMaxBlockCostLimit',
  'UnsupportedVersion',
  'InvalidWritableAccount',
  'WouldExceedMaxAccountCostLimit',
  'WouldExceedAccountDataBlockLimit',
  'TooManyAccountLocks',
  'AddressLookupTableNotFound',
  'InvalidAddressLookupTableOwner',
  'InvalidAddressLookupTableData',
  'InvalidAddressLookupTableIndex',
  'InvalidRentPayingAccount',
  'WouldExceedMaxVoteCostLimit',
  'WouldExceedAccountDataTotalLimit',
  'MaxLoadedAccountsDataSizeExceeded',
  'ResanitizationNeeded',
  'InvalidLoadedAccountsDataSizeLimit',
  'UnbalancedTransaction',
  'ProgramCacheHitMaxLimit',
  'CommitCancelled',
] as const

const instructionFieldless = [
  'GenericError',
  'InvalidArgument',
  'InvalidInstructionData',
  'InvalidAccountData',
  'AccountDataTooSmall',
  'InsufficientFunds',
  'IncorrectProgramId',
  'MissingRequiredSignature',
  'AccountAlreadyInitialized',
  'UninitializedAccount',
  'UnbalancedInstruction',
  'ModifiedProgramId',
  'ExternalAccountLamportSpend',
  'ExternalAccountDataModified',
  'ReadonlyLamportChange',
  'ReadonlyDataModified',
  'DuplicateAccountIndex',
  'ExecutableModified',
  'RentEpochModified',
  'NotEnoughAccountKeys',
  'AccountDataSizeChanged',
  'AccountNotExecutable',
  'AccountBorrowFailed',
  'AccountBorrowOutstanding',
  'DuplicateAccountOutOfSync',
  'InvalidError',
  'ExecutableDataModified',
  'ExecutableLamportChange',
  'ExecutableAccountNotRentExempt',
  'UnsupportedProgramId',
  'CallDepth',
  'MissingAccount',
  'ReentrancyNotAllowed',
  'MaxSeedLengthExceeded',
  'InvalidSeeds',
  'InvalidRealloc',
  'ComputationalBudgetExceeded',
  'PrivilegeEscalation',
  'ProgramEnvironmentSetupFailure',
  'ProgramFailedToComplete',
  'ProgramFailedToCompile',
  'Immutable',
  'IncorrectAuthority',
  'AccountNotRentExempt',
  'InvalidAccountOwner',
  'ArithmeticOverflow',
  'UnsupportedSysvar',
  'IllegalOwner',
  'MaxAccountsDataAllocationsExceeded',
  'MaxAccountsExceeded',
  'MaxInstructionTraceLengthExceeded',
  'BuiltinProgramsMustConsumeComputeUnits',
  'BorshIoError',
] as const

type InstructionError = string | { Custom: number } | { BorshIoError: string }
export type TransactionError =
  | string
  | { InstructionError: [number, InstructionError] }
  | { DuplicateInstruction: number }
  | { InsufficientFundsForRent: { account_index: number } }
  | { ProgramExecutionTemporarilyRestricted: { account_index: number } }

/** The form of LiteSVM's errors: a number, or an object identified by its class name. */
type RawError =
  | number
  | { constructor: { name: string }; index?: number; accountIndex?: number; err?: () => unknown }

const instructionError = (raw: unknown): InstructionError => {
  if (typeof raw === 'number') return instructionFieldless[raw] ?? 'GenericError'
  const { code, msg } = raw as { code?: number; msg?: string }
  return code === undefined ? { BorshIoError: msg ?? '' } : { Custom: code }
}

export const transactionError = (raw: RawError): TransactionError => {
  if (typeof raw === 'number') return fieldless[raw] ?? 'SanitizeFailure'
  const accountIndex = raw.accountIndex ?? 0
  switch (raw.constructor.name) {
    case 'TransactionErrorInstructionError':
      return { InstructionError: [raw.index ?? 0, instructionError(raw.err?.())] }
    case 'TransactionErrorDuplicateInstruction':
      return { DuplicateInstruction: raw.index ?? 0 }
    case 'TransactionErrorInsufficientFundsForRent':
      return { InsufficientFundsForRent: { account_index: accountIndex } }
    default:
      return { ProgramExecutionTemporarilyRestricted: { account_index: accountIndex } }
  }
}

const sentences: Record<string, string> = {
  AccountNotFound: 'Attempt to debit an account but found no record of a prior credit.',
  InsufficientFundsForFee: 'Insufficient funds for fee',
  InvalidAccountForFee: 'This account may not be used to pay transaction fees',
  BlockhashNotFound: 'Blockhash not found',
  ProgramAccountNotFound: 'Attempt to load a program that does not exist',
  SanitizeFailure: 'Transaction failed to sanitize accounts offsets correctly',
  AddressLookupTableNotFound: "Transaction loads an address table account that doesn't exist",
}

/** The tail of "Transaction simulation failed: ...", with the texts of a node. */
export const errorSentence = (error: TransactionError): string => {
  if (typeof error === 'string') return sentences[error] ?? error
  if ('InstructionError' in error) {
    const [index, inner] = error.InstructionError
    const detail =
      typeof inner === 'object' && 'Custom' in inner
        ? `custom program error: 0x${inner.Custom.toString(16)}`
        : typeof inner === 'string'
          ? inner
          : `Failed to serialize or deserialize account data: ${inner.BorshIoError}`
    return `Error processing Instruction ${index}: ${detail}`
  }
  if ('InsufficientFundsForRent' in error) {
    return `Transaction results in an account (${error.InsufficientFundsForRent.account_index}) with insufficient funds for rent`
  }
  return Object.keys(error)[0] ?? 'unknown error'
}

/** Only a failure during instructions (or at the rent check after them) lands in a block and costs the fee. */
export const landsInBlock = (error: TransactionError): boolean =>
  typeof error === 'object' && ('InstructionError' in error || 'InsufficientFundsForRent' in error)
