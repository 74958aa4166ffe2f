/** The gateway with an operation of the tests that sends on Solana. */
import { readConfig } from '#config.ts'
import { startGateway } from '#start/gateway.ts'
import { logger } from '#start/logger.ts'
import { sendOperation } from '../chains/svm-send.ts'

const config = readConfig()
const printLine = (line: string) => process.stdout.write(`${line}\n`)
const log = logger(config.LOG_LEVEL)
const { url, close } = await startGateway({ config, log, printLine }, { addOperations: sendOperation() })
process.on('SIGTERM', () => void close().finally(() => process.exit(0)))
printLine(`portico ready ${url}`)
