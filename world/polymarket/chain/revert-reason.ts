import { type Abi, decodeErrorResult, type Hex } from 'viem'
import { artifact, type ContractFile, contractFiles } from './artifacts.ts'

/** The errors of all contracts, each once. */
let known: Abi | undefined

const errorsOf = (file: ContractFile): Abi => artifact(file).abi.filter(({ type }) => type === 'error')

const errors = (): Abi => {
  known ??= [...new Map(contractFiles.flatMap(errorsOf).map((each) => [JSON.stringify(each), each])).values()]
  return known
}

/** An error of an inner call is an argument of the outer one. */
const innerReason = (value: unknown): string => {
  const text = String(value)
  return /^0x[0-9a-f]{8,}$/.test(text) && text.length % 64 === 10 ? (describe(text as Hex) ?? text) : text
}

const describe = (data: Hex): string | undefined => {
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi: errors(), data })
    return errorName === 'Error' ? String(args[0]) : `${errorName}(${args.map(innerReason).join(', ')})`
  } catch {
    return undefined
  }
}

/** Why a node refused a call: the decoded data of its answer, or its message. */
export const reasonOf = (error: unknown): string => {
  const { message, cause } = error as Error & { cause?: { data?: unknown } }
  const data = cause?.data
  return (typeof data === 'string' && data.length > 2 ? describe(data as Hex) : undefined) ?? message
}
