import { testLanguage } from '../contract';
import { python } from './language';

testLanguage(python);
