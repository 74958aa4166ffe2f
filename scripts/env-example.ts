/** Writes .env.example from the variables of config.ts; with --check it only reports whether it is current. */
import { envExample } from '../src/config.ts'
import { writeGenerated } from './generated-file.ts'

const text = envExample()

writeGenerated({ file: '.env.example', text, source: 'src/config.ts' })
