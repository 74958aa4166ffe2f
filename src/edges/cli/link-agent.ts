import { clientOf } from './call-operation.ts'
import type { Options } from './operation-input.ts'
import type { Terminal } from './terminal.ts'

/** `portico link` shows the code with which a person links the agent of the stored key. */
export async function link(terminal: Terminal, options: Options): Promise<void> {
  const { code, expires_at } = await clientOf(terminal, options).agents.linkCode({})
  terminal.out(
    `code      ${code}\nexpires   ${expires_at}\n\nYour person enters it after portico login:\n  portico agents link --code ${code}\nand confirms it on the page that the answer names. An app of theirs that may propose does the\nsame by the operation agents_link.\n`,
  )
}
