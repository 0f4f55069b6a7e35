import { contractFor } from '../../contract/lock-contract';
import { glideClient } from '../../support/glide-kinds';

contractFor(glideClient);
